"""A stand-in for Amazon Cognito's managed login and token endpoints, over moto's user pools: see CONFORMANCE.md."""

from cicada_local.issuer.server import Issuer

__all__ = ["Issuer"]
