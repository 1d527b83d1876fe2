"""Campaigns: one kind of fault, any number of times, with the checker behind it.

The suite runs each at its smallest size (``tests/faults/test_campaigns.py``), ``make faults ROUNDS=…`` at any.
"""

from tests.faults.campaigns.base import Campaign
from tests.faults.campaigns.disconnect import Disconnect
from tests.faults.campaigns.hold import Hold
from tests.faults.campaigns.kill import Kill
from tests.faults.campaigns.kill_in_tool import KillInTool
from tests.faults.campaigns.platform import Platform
from tests.faults.campaigns.stop import Stop

KINDS: tuple[type[Campaign], ...] = (Kill, KillInTool, Stop, Disconnect, Hold, Platform)

__all__ = ["KINDS", "Campaign", "Disconnect", "Hold", "Kill", "KillInTool", "Platform", "Stop"]
