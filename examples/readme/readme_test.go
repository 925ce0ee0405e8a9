package readme_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/simtest"
)

// The README's examples are the bodies of the functions here, and the program in shell.

func Example_rollout() {
	fleet := rollout.Fleet{
		Replicas: 10,
		Bounds:   rollout.Fenceposts(rollout.IntOrPercent{Value: 25, Percent: true}, rollout.IntOrPercent{}, 10),
		Sets: []rollout.Set{ // the oldest first
			{Name: "old", Spec: 10, Actual: 10, Available: 10},
			{Name: "new", Spec: 0, New: true},
		},
	}
	orders, why := rollout.Step(fleet, nil)
	for _, o := range orders {
		fmt.Printf("%s from %d to %d: %s\n", o.Name, o.From, o.To, o.Why)
	}
	fmt.Println(why)
	// Output:
	// new from 0 to 3: 10 machines ordered or still there, ceiling is 13: 3 new machines may come
	// 1 set is to be resized
}

func TestMyDriver(t *testing.T) {
	policy := machine.DefaultPolicy() // your policy here
	policy.HealthTimeout = 5 * time.Minute
	simtest.Run(t, simtest.Options{
		Driver:   myDriver, // func(w *sim.World) driver.Driver: yours, around the world's provider, w.Provider()
		Policies: manager.Policies{Machine: policy},
		Properties: []sim.Property{{Name: "not too many", Check: func(w *sim.World) error { // your property here
			if n := len(w.Provider().VMs()) - w.OrphanVMs(); n > 60 {
				return fmt.Errorf("there are %d VMs", n)
			}
			return nil
		}}},
	})
}

// planted is set for a driver that says OK to deletes and deletes nothing.
const planted = "MILLWRIGHT_README_PLANTED"

func myDriver(w *sim.World) driver.Driver {
	return driver.Intercept(w.Provider(), func(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
		if call.Method == codes.DeleteMachine && os.Getenv(planted) != "" {
			return nil
		}
		return next(ctx)
	})
}

// TestPlantedBugIsFound: the README's example finds a bug in its driver, and says in which call it is.
func TestPlantedBugIsFound(t *testing.T) {
	test := exec.Command(os.Args[0], "-test.run=^TestMyDriver$")
	test.Env = append(os.Environ(), planted+"=yes")
	out, err := test.CombinedOutput()
	if err == nil {
		t.Fatalf("a driver that deletes nothing passes:\n%s", out)
	}
	for _, want := range []string{
		`simtest: seed \d+: answer of DeleteMachine: it says OK for machine \S+, and VM \S+ is still there\n`,
		`\n +> +\S+ +driver: DeleteMachine .* -> OK\n`,
		`go test -run '\^TestMyDriver\$' -simtest.seed=\d+\n`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func Example_decide() {
	now := time.Now()
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m1"}, CreatedAt: now}}
	m.Spec.Class.Name = "small"
	m.AddFinalizer(machine.Finalizer)
	o := &machine.Observation{Machine: m, Class: &machine.Class{}, NoCluster: true}

	plan, err := machine.Decide(o, machine.DefaultPolicy(), now)
	fmt.Printf("%T: %s, %v\n", plan.Effect, plan.Why, err)

	o.VM = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}} // the effect's answer
	plan, err = machine.Decide(o, machine.DefaultPolicy(), now)
	fmt.Printf("%T: %s, %v\n", plan.Write, plan.Why, err)
	// Output:
	// machine.GetVM: asking the provider whether the VM exists, <nil>
	// *machine.UpdateStatus: about to create the VM, <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// TestReadmeExamples: each piece of Go in the README is code of this directory.
func TestReadmeExamples(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	check(err)
	code := ""
	for _, path := range []string{"readme_test.go", "shell/main.go", "shell/main_test.go"} {
		source, err := os.ReadFile(path)
		check(err)
		code += flat(string(source))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 4 {
		t.Fatalf("the README has %d examples, it should have one at each depth", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code, flat(block[1])) {
			t.Errorf("the README shows code that is not in examples/readme:\n%s", block[1])
		}
	}
}

// flat is code without its indentation.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
