"""The local cloud: the deployed stacks, served on this machine by moto and stand-ins that speak AWS's wire formats."""
