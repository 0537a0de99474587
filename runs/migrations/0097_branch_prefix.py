import runs.projects.claim_names
import runs.projects.checkout_fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0096_runs_that_do_not_end'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='branch_prefix',
            field=models.CharField(db_default='afk/', default='afk/', help_text='The key of the issue follows, as in afk/7. Choose what nobody else uses: labsite takes such branches for claims and removes them once they are merged. Branches that are there keep their name.', max_length=60, validators=[runs.projects.claim_names.fit_prefix], verbose_name='branches of runs begin with'),
        ),
        migrations.AddField(
            model_name='project',
            name='past_prefixes',
            field=models.JSONField(default=list, editable=False, help_text='With what branches of runs began before; they claim their issues still.', null=True),
        ),
        migrations.AddField(
            model_name='project',
            name='sparse_folders',
            field=models.TextField(blank=True, db_default='', default='', help_text='One a line, such as services/shop. New worktrees hold them and the files above them; the rest of the repository is left out, for agents and for checks. Empty: everything.', max_length=20000, validators=[runs.projects.checkout_fields.fit_folders], verbose_name='only these folders'),
        ),
        migrations.AlterField(
            model_name='project',
            name='has_submodules',
            field=models.BooleanField(db_default=False, default=False, help_text='In every new worktree, before the set-up commands, with their own submodules. Off: their folders are empty. The token of the project is sent to its own server alone.', verbose_name='submodules are checked out'),
        ),
    ]
