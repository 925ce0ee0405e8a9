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

// plans returns the rollouts that the golden files show, by the name of the file.
func plans(t require.TestingT) map[string]plan {
	slowDeletion := modelFailing(t, "")
	slowDeletion.Delete = 10 * time.Minute
	limited := modelFailing(t, "")
	limited.Limit = 4 * time.Minute
	zero := preview.Model{}
	failingOne := modelFailing(t, "1")
	updating := modelFailing(t, "")
	updating.Update, updating.FailUpdate.Value = 15*time.Minute, 1
	return map[string]plan{
		"recreate":              {replicas: 6, from: 5, model: modelFailing(t, ""), change: recreate},
		"paused":                {replicas: 7, from: 5, surge: "1", model: modelFailing(t, ""), change: pause},
		"rollback":              {replicas: 3, from: 3, surge: "1", model: modelFailing(t, ""), change: rollBack},
		"no-history-kept":       {replicas: 2, from: 2, surge: "1", model: modelFailing(t, ""), change: keepNoHistory},
		"progress-deadline":     {replicas: 3, from: 3, surge: "1", model: failingOne, change: setDeadline},
		"surge-one-at-a-time":   {replicas: 4, from: 4, surge: "1", model: modelFailing(t, "")},
		"surge-a-fifth":         {replicas: 50, from: 50, surge: "20%", model: modelFailing(t, "5%")},
		"unavailable-only":      {replicas: 6, from: 6, unavailable: "2", model: modelFailing(t, "")},
		"surge-and-unavailable": {replicas: 10, from: 10, surge: "25%", unavailable: "25%", model: modelFailing(t, "")},
		"neither-of-both":       {replicas: 3, from: 3, model: modelFailing(t, "")},
		"first-creation":        {replicas: 5, surge: "1", model: modelFailing(t, "")},
		"zero":                  {surge: "1", model: modelFailing(t, "")},
		"nothing-to-do":         {replicas: 5, from: 5, surge: "1", scaleOnly: true, model: modelFailing(t, "")},
		"scale-up":              {replicas: 8, from: 3, surge: "1", scaleOnly: true, model: modelFailing(t, "25%")},
		"scale-down":            {replicas: 3, from: 8, surge: "1", scaleOnly: true, model: modelFailing(t, "")},
		"scale-to-zero":         {replicas: 0, from: 4, surge: "1", model: modelFailing(t, "")},
		"scale-up-and-roll":     {replicas: 9, from: 5, surge: "2", model: modelFailing(t, "")},
		"scale-down-and-roll":   {replicas: 4, from: 10, surge: "1", unavailable: "1", model: modelFailing(t, "")},
		"min-ready":             {replicas: 3, from: 3, surge: "1", minReady: time.Minute, model: modelFailing(t, "")},
		"slow-deletion":         {replicas: 6, from: 6, surge: "2", model: slowDeletion},
		"every-creation-fails":  {replicas: 6, from: 6, surge: "2", unavailable: "1", model: modelFailing(t, "100%")},
		"the-first-two-fail":    {replicas: 4, from: 4, surge: "1", model: modelFailing(t, "2")},
		"limit-reached":         {replicas: 6, from: 6, surge: "1", model: limited},
		"no-time-at-all":        {replicas: 3, from: 3, surge: "1", model: zero},
		"stuck":                 {replicas: 4, from: 2, surge: "1", scaleOnly: true, model: modelFailing(t, ""), change: pauseSet},
		"unhealthy-old":         {replicas: 4, from: 4, surge: "1", model: modelFailing(t, ""), change: makeTwoUnhealthy},
		"in-place":              {replicas: 5, from: 5, unavailable: "2", model: updating, change: inPlace},
		"in-place-with-surge":   {replicas: 3, from: 3, surge: "1", model: updating, change: inPlace},
		"refused":               {replicas: -1, from: 2, surge: "1", model: modelFailing(t, "")},
	}
}

// pauseSet pauses the set, so that it creates and deletes no machines.
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

// rollBack asks for the template of the existing set, so that no other set is needed.
func rollBack(d *deployment.Deployment, sets []deployment.Children) {
	sets[0].Set.Revision = 1
	d.Spec.RollbackTo = &deployment.Rollback{}
}

func keepNoHistory(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.RevisionHistoryLimit = new(int32)
}

func setDeadline(d *deployment.Deployment, _ []deployment.Children) {
	d.Spec.ProgressDeadline = 10 * time.Minute
}

// makeTwoUnhealthy makes two machines unhealthy.
func makeTwoUnhealthy(_ *deployment.Deployment, sets []deployment.Children) {
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
