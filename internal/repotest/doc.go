// Package repotest checks the rules of the repository that no linter knows. Its tests check which
// package imports which, what decisions may call, and that everything exists that documentation and
// comments link to or name.
package repotest
