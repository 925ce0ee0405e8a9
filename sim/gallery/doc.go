// Package gallery holds mistakes that somebody could make in this library, one
// small change of its source each, and a test that sees whether the simulation
// notices them. A check that nothing can fail is worth nothing; this is how
// the checks of package sim are checked.
//
// The mistakes are applied to a copy, by the build's overlay, so the source stays
// as it is; all are in one build, and a switch chooses one (package overlay). Half of them were chosen by somebody who had not seen the checks.
package gallery
