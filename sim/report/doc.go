// Package report shows the preview of a rollout to people. It writes a preview.Timeline as a
// table of text, as a few lines of summary, and as a chart in one SVG file that needs nothing else.
// The same timeline gives the same bytes.
package report
