"""What Cicada is built from: locks with hashes, licences, bills of materials and known vulnerabilities."""
