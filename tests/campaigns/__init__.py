"""Campaigns: one kind of fault, as often as somebody wants, with the checker behind it.

The suite runs each at its smallest size (``tests/test_campaigns.py``), ``make faults ROUNDS=…`` at any.
"""

from tests.campaigns.base import Campaign
from tests.campaigns.disconnect import Disconnect
from tests.campaigns.hold import Hold
from tests.campaigns.kill import Kill
from tests.campaigns.kill_in_tool import KillInTool
from tests.campaigns.stop import Stop

KINDS: tuple[type[Campaign], ...] = (Kill, KillInTool, Stop, Disconnect, Hold)

__all__ = ["KINDS", "Campaign", "Disconnect", "Hold", "Kill", "KillInTool", "Stop"]
