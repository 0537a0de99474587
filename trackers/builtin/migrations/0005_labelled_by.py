"""All tables as they stood after the migration of this name. It stands for 0001 to 0005.

Folders that applied the last of them have it recorded; see docs/decisions/0033-squashed-migrations.md.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Root',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('next_number', models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('root', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='builtin.root')),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('root', 'name'), name='label_once_per_root')],
            },
        ),
        migrations.CreateModel(
            name='Issue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('title', models.TextField()),
                ('body', models.TextField(blank=True)),
                ('author', models.CharField(max_length=150)),
                ('is_open', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('labels', models.ManyToManyField(blank=True, related_name='issues', to='builtin.label')),
                ('root', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='issues', to='builtin.root')),
                ('labelled_by', models.JSONField(default=dict, help_text='Who set each label, by its name.')),
            ],
            options={
                'ordering': ['number'],
                'indexes': [models.Index(condition=models.Q(('is_open', True)), fields=['root', 'number'], name='issue_open')],
                'constraints': [models.UniqueConstraint(fields=('root', 'number'), name='issue_number_once_per_root')],
            },
        ),
        migrations.CreateModel(
            name='IssueComment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('author', models.CharField(max_length=150)),
                ('body', models.TextField()),
                ('at', models.DateTimeField()),
                ('issue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='builtin.issue')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='PullRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('head', models.CharField(max_length=200)),
                ('base', models.CharField(max_length=200)),
                ('head_commit', models.CharField(blank=True, max_length=64)),
                ('title', models.TextField()),
                ('body', models.TextField(blank=True)),
                ('author', models.CharField(max_length=150)),
                ('state', models.CharField(choices=[('open', 'open'), ('merged', 'merged'), ('closed', 'closed')], default='open', max_length=10)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('root', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pulls', to='builtin.root')),
                ('base_commit', models.CharField(blank=True, default='', max_length=64)),
                ('merge_at', models.DateTimeField(blank=True, null=True)),
                ('merge_by', models.CharField(blank=True, default='', max_length=150)),
                ('merge_commit', models.CharField(blank=True, default='', max_length=64)),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('root', 'number'), name='pull_number_once_per_root'), models.UniqueConstraint(condition=models.Q(('state', 'open')), fields=('root', 'head'), name='pull_one_open_per_head')],
                'indexes': [models.Index(fields=['root', 'head'], name='pull_of_head'), models.Index(condition=models.Q(models.Q(('state', 'merged'), _negated=True), ('merge_at__isnull', False)), fields=['merge_at'], name='pull_in_merge'), models.Index(condition=models.Q(('state', 'open')), fields=['-created_at'], name='pull_open')],
            },
        ),
        migrations.CreateModel(
            name='PullComment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('author', models.CharField(max_length=150)),
                ('body', models.TextField()),
                ('at', models.DateTimeField()),
                ('path', models.TextField(blank=True, default='')),
                ('line', models.PositiveIntegerField(blank=True, null=True)),
                ('side', models.CharField(blank=True, default='', max_length=3)),
                ('commit', models.CharField(blank=True, default='', max_length=64)),
                ('quote', models.TextField(blank=True, default='')),
                ('pull', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='builtin.pullrequest')),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('commit', ''), ('line', None), ('path', ''), ('side', '')), models.Q(('line__gte', 1), ('side__in', ['old', 'new']), models.Q(('path', ''), _negated=True), models.Q(('commit', ''), _negated=True)), _connector='OR'), name='pull_comment_on_a_whole_place_or_none')],
            },
        ),
    ]
