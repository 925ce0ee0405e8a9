// Package report shows what a preview of a rollout says, to people: a
// deployment.Timeline as a table of text, as a few lines of summary, and as a
// chart in one SVG file that needs nothing else. The same timeline gives the
// same bytes.
package report
