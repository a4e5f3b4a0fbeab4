"""Amazon CloudFront on a laptop: the deployed distribution, served as its template says. See CONFORMANCE.md."""
