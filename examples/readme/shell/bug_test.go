package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// forgetful makes another VM for a name that has one.
type forgetful struct{ *cloud }

func (f forgetful) CreateMachine(_ context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, size, err := f.find(q.Class, q.Machine, true)
	if err != nil {
		return nil, err
	}
	f.made++
	id := fmt.Sprintf("cloud:///%s/%d", size, f.made)
	f.vms[id] = vm{q.Machine.Name, q.Machine.UID}
	return &driver.CreateMachineResponse{ProviderID: id}, nil
}

// TestDriverWithABug: the suite finds a create that is not idempotent, and fails one check for it. It
// runs in a process of its own, where it may fail.
func TestDriverWithABug(t *testing.T) {
	const environment = "MILLWRIGHT_TEST_BUG"
	if os.Getenv(environment) != "" {
		drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
			return drivertest.Setup{
				NoNodeNames: true,
				Driver:      forgetful{&cloud{vms: map[string]vm{}}},
				Class:       &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}, ProviderSpec: []byte(`{"size":"small"}`)},
			}
		}})
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDriverWithABug$")
	command.Env = append(os.Environ(), environment+"=yes")
	out, err := command.CombinedOutput()
	if err == nil || strings.Count(string(out), "--- FAIL: TestDriverWithABug/") != 1 ||
		!strings.Contains(string(out), "--- FAIL: TestDriverWithABug/Create/is_idempotent_by_name") {
		t.Errorf("%v:\n%s", err, out)
	}
}
