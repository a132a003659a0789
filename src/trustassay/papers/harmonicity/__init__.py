"""The search along gamma and the check of isotropy of Kersting et al. 2024."""
