// Package report shows previews of rollouts and histories of simulations to people. It writes a
// preview.Timeline as a table of text, as a few lines of summary, and as a chart in one SVG file that
// needs nothing else. It writes a history.History as text, as a chart, and as a page of HTML. The
// same input gives the same bytes.
package report
