// Package history is what a simulation leaves behind of one fleet: how many machines there were, in
// which phase, between which bounds, and what happened to them. It is plain data of bounded size,
// for package report to show.
package history
