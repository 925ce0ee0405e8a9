// Package history holds the record of one fleet in a simulation: how many machines there were, in
// which phase, between which bounds, and what happened to them. It is plain data of bounded size,
// which package report shows.
package history
