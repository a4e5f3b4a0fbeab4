"""IAM for the local cloud: whose call a request is, what it needs, and whether the deployed policies allow it.

- :mod:`policies` and :mod:`conditions` evaluate policy documents;
- :mod:`principals` issues roles' credentials and tells who signed a request;
- :mod:`requirements` lists the actions and resources of a request;
- :mod:`resources` has the policies of buckets, keys and functions;
- :mod:`refusals` writes the error of each service;
- :mod:`enforcement` puts them together for the front server.

moto evaluates policies too, but without their conditions, and only for the services that it plays itself.
"""

from cicada_local.permissions.enforcement import Enforcement
from cicada_local.permissions.principals import Principals, RoleNotAssumable

__all__ = ["Enforcement", "Principals", "RoleNotAssumable"]
