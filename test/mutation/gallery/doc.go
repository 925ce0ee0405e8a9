// Package gallery has mistakes that a developer could make in this library, and a test that the simulation
// or the tests of a package notice each of them. So it checks the checks: one that cannot fail would be
// worthless. Each mistake is one small change of the source.
//
// The source itself is not changed: the go command's overlay builds changed copies. All mistakes are in
// one build, and an environment variable switches one on (package overlay). Most mistakes were chosen by
// looking only at the code, not at its tests.
//
// There is one table for each package. CONTRIBUTING.md describes how to add a mistake.
package gallery
