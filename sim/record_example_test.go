package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/report"
)

// This example records a run and writes it as a page that a browser opens.
func ExampleWorld_Record() {
	w, err := sim.New(sim.Options{Seed: 7, Faults: sim.Faults{DeadBoot: 0.2}, Manager: manager.Options{Policies: manager.Policies{Safety: safety.Off()}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	recorder := w.Record("web") // the deployment's name, in sim.Namespace; it need not exist yet
	_, err = w.Deployments().Create(context.Background(), fleet(3, deployment.Strategy{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = w.Until(func() bool { return w.Complete("web") }, 24*time.Hour)

	var file bytes.Buffer
	wrong := report.HTML(&file, recorder.History(), report.PageOptions{Title: "Tonight's rollout"})
	fmt.Println(strings.Contains(file.String(), "<h1>Tonight&#39;s rollout</h1>"), err, wrong)
	// Output: true <nil> <nil>
}
