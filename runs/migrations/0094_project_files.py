import django.db.models.deletion
import runs.core.encrypted
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0093_submodules'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProjectFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(max_length=300)),
                ('content', runs.core.encrypted.SecretField(editable=False)),
                ('size', models.PositiveIntegerField()),
                ('changed_at', models.DateTimeField()),
                ('changed_by', models.CharField(max_length=150)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='runs.project')),
            ],
            options={
                'ordering': ['path'],
            },
        ),
        migrations.AddConstraint(
            model_name='projectfile',
            constraint=models.UniqueConstraint(fields=('project', 'path'), name='one_project_file_a_path'),
        ),
    ]
