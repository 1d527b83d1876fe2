from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway_app.models import RuntimeProcess, WorkspaceHome
from gateway_app.runtime.processes import live
from gateway_app.runtime.workspaces import HOST, folder_name
from responses_app.management.examples import add_examples
from responses_app.services.workspaces import workspaces_folder


class Command(BaseCommand):
    help = (
        "Declare that the files of the owners of another host are on this one now: copied here, "
        "or given up."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser, "adopt_workspaces worker-2", "adopt_workspaces worker-2 --without-files"
        )
        parser.add_argument("host", metavar="HOST", help="the host that had the files")
        parser.add_argument(
            "--without-files",
            action="store_true",
            help="also for owners whose folder is not here: they begin with an empty one",
        )

    def handle(self, *args: Any, host: str, without_files: bool, **options: Any) -> None:
        mine = folder_name()
        found = WorkspaceHome.objects.filter(host=host).exclude(workspaces=mine)
        if not found:
            raise CommandError(f"No owner has files on {host} that are not here.")
        names = found.values_list("workspaces", flat=True)
        if RuntimeProcess.objects.filter(pk__in=live(), workspaces__in=names).exists():
            raise CommandError(f"Processes on {host} run and use the files; stop them first.")
        folder = workspaces_folder()
        adopted = 0
        missing: list[str] = []
        for home in found.select_related("owner"):
            if not without_files and not (folder / str(home.owner_id)).is_dir():
                missing.append(f"{home.owner.get_username()} ({home.owner_id})")
                continue
            # One that a process has changed meanwhile stays as it is.
            same = WorkspaceHome.objects.filter(pk=home.pk, workspaces=home.workspaces)
            adopted += same.update(workspaces=mine, host=HOST)
        self.stdout.write(f"The files of {adopted} owners are on {HOST} now.")
        if missing:
            raise CommandError(
                f"No folder of these owners is in {folder}: {', '.join(missing)}. "
                "Copy them there, or use --without-files."
            )
