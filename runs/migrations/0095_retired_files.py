import django.db.models.deletion
import runs.core.encrypted
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0094_project_files'),
    ]

    operations = [
        migrations.CreateModel(
            name='RetiredFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content', runs.core.encrypted.SecretField(editable=False)),
                ('changed_at', models.DateTimeField()),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='retired_files', to='runs.project')),
            ],
        ),
    ]
