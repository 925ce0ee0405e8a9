// Package repotest holds the rules of the repository that no linter knows, as tests: which package
// may import which, and that what documentation links to and names exists.
package repotest
