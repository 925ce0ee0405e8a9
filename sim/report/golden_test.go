package report_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim/preview"
	"github.com/millwright-go/millwright/sim/report"
)

// plans are what the goldens show.
func plans(t require.TestingT) map[string]plan {
	slow := usual(t, "")
	slow.Delete = 10 * time.Minute
	short := usual(t, "")
	short.Limit = 4 * time.Minute
	quick := preview.Model{}
	hasty := usual(t, "1")
	updating := usual(t, "")
	updating.Update, updating.FailUpdate.Value = 15*time.Minute, 1
	return map[string]plan{
		"recreate":              {replicas: 6, from: 5, model: usual(t, ""), change: recreate},
		"paused":                {replicas: 7, from: 5, surge: "1", model: usual(t, ""), change: pause},
		"rollback":              {replicas: 3, from: 3, surge: "1", model: usual(t, ""), change: rollBack},
		"no-history-kept":       {replicas: 2, from: 2, surge: "1", model: usual(t, ""), change: forget},
		"progress-deadline":     {replicas: 3, from: 3, surge: "1", model: hasty, change: hurry},
		"surge-one-at-a-time":   {replicas: 4, from: 4, surge: "1", model: usual(t, "")},
		"surge-a-fifth":         {replicas: 50, from: 50, surge: "20%", model: usual(t, "5%")},
		"unavailable-only":      {replicas: 6, from: 6, lost: "2", model: usual(t, "")},
		"surge-and-unavailable": {replicas: 10, from: 10, surge: "25%", lost: "25%", model: usual(t, "")},
		"neither-of-both":       {replicas: 3, from: 3, model: usual(t, "")},
		"first-creation":        {replicas: 5, surge: "1", model: usual(t, "")},
		"zero":                  {surge: "1", model: usual(t, "")},
		"nothing-to-do":         {replicas: 5, from: 5, surge: "1", scaleOnly: true, model: usual(t, "")},
		"scale-up":              {replicas: 8, from: 3, surge: "1", scaleOnly: true, model: usual(t, "25%")},
		"scale-down":            {replicas: 3, from: 8, surge: "1", scaleOnly: true, model: usual(t, "")},
		"scale-to-zero":         {replicas: 0, from: 4, surge: "1", model: usual(t, "")},
		"scale-up-and-roll":     {replicas: 9, from: 5, surge: "2", model: usual(t, "")},
		"scale-down-and-roll":   {replicas: 4, from: 10, surge: "1", lost: "1", model: usual(t, "")},
		"min-ready":             {replicas: 3, from: 3, surge: "1", minReady: time.Minute, model: usual(t, "")},
		"slow-deletion":         {replicas: 6, from: 6, surge: "2", model: slow},
		"every-creation-fails":  {replicas: 6, from: 6, surge: "2", lost: "1", model: usual(t, "100%")},
		"the-first-two-fail":    {replicas: 4, from: 4, surge: "1", model: usual(t, "2")},
		"limit-reached":         {replicas: 6, from: 6, surge: "1", model: short},
		"no-time-at-all":        {replicas: 3, from: 3, surge: "1", model: quick},
		"stuck":                 {replicas: 4, from: 2, surge: "1", scaleOnly: true, model: usual(t, ""), change: pauseSet},
		"unhealthy-old":         {replicas: 4, from: 4, surge: "1", model: usual(t, ""), change: breakTwo},
		"in-place":              {replicas: 5, from: 5, lost: "2", model: updating, change: inPlace},
		"in-place-with-surge":   {replicas: 3, from: 3, surge: "1", model: updating, change: inPlace},
		"refused":               {replicas: -1, from: 2, surge: "1", model: usual(t, "")},
	}
}

// pauseSet has the set left as it is.
func pauseSet(_ *deployment.Deployment, sets []deployment.Children) {
	sets[0].Set.Annotations = map[string]string{"millwright-go/paused": "true"}
}

func recreate(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.Strategy.Kind = deployment.Recreate
}

func inPlace(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.Strategy.Kind = deployment.InPlaceUpdate
}

func pause(d *deployment.Deployment, _ []deployment.Children) { d.Spec.Paused = true }

// rollBack asks for the template of the set there is, and so takes back the set that was to come.
func rollBack(d *deployment.Deployment, sets []deployment.Children) {
	sets[0].Set.Revision = 1
	d.Spec.RollbackTo = &deployment.Rollback{}
}

func forget(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.RevisionHistoryLimit = new(int32)
}

func hurry(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.ProgressDeadline = 10 * time.Minute
}

// breakTwo makes two machines unhealthy.
func breakTwo(_ *deployment.Deployment, sets []deployment.Children) {
	for _, m := range sets[0].Machines[:2] {
		m.Status.Phase = machine.PhaseUnknown
	}
}

func TestTextGoldens(t *testing.T) {
	for name, p := range plans(t) {
		t.Run(name, func(t *testing.T) {
			line := p.timeline(t)
			var out bytes.Buffer
			require.NoError(t, report.Text(&out, line, report.TextOptions{}))
			out.WriteString("\n" + report.Summary(line))
			golden(t, name+".txt", out.Bytes())
		})
	}
}

func TestChartGoldens(t *testing.T) {
	for _, name := range []string{"surge-a-fifth", "every-creation-fails"} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".svg", draw(t, plans(t)[name].timeline(t), report.ChartOptions{}))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testkit.Golden(t, filepath.Join("testdata", name), string(got))
}

func draw(t require.TestingT, line *preview.Timeline, o report.ChartOptions) []byte {
	var out bytes.Buffer
	require.NoError(t, report.SVG(&out, line, o))
	return out.Bytes()
}
