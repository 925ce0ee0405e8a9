package controllers

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// tableRows is a registerer that makes a row of the page's table of each metric.
type tableRows struct {
	prometheus.Registerer
	all []string
}

// descParts matches the text of a prometheus.Desc.
var descParts = regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]+)", constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// Register implements prometheus.Registerer.
func (d *tableRows) Register(c prometheus.Collector) error {
	found := make(chan *prometheus.Desc, 10)
	c.Describe(found)
	close(found)
	for desc := range found {
		text := desc.String()
		m := descParts.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("odd description %s", text)
		}
		if m[3] == "" {
			d.all = append(d.all, fmt.Sprintf("| `%s` | | %s |", m[1], m[2]))
			continue
		}
		labels := "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
		d.all = append(d.all, fmt.Sprintf("| `%s` | %s | %s |", m[1], labels, m[2]))
	}
	return nil
}

// TestMetricsOfThePage: docs/how-to/kubernetes.md lists exactly the existing metrics, with their
// labels and help texts.
func TestMetricsOfThePage(t *testing.T) {
	to := &tableRows{}
	_, err := newMetrics(to, nil)
	require.NoError(t, err)
	page, err := os.ReadFile("../../../docs/how-to/kubernetes.md")
	require.NoError(t, err)
	var listed []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `millwright_") {
			listed = append(listed, strings.TrimSpace(line))
		}
	}
	slices.Sort(to.all)
	slices.Sort(listed)
	require.Len(t, to.all, 17)
	require.Equal(t, to.all, listed)
}
