// Command contract writes docs/reference/contract.md, the page about intended differences from the driver
// contract. It fills the template contract.md.tmpl with numbers from the default policies and the recovery
// table. Its arguments are the directory to write to and the file of the recovery table.
package main

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/backoff"
)

//go:generate go run . ../reference ../../codes/testdata/recovery.csv

//go:embed contract.md.tmpl
var text string

// retry is a call and a code that are retried here, although the contract says that they are not.
type retry struct{ Call, Code, First, Longest string }

// retries returns these calls and codes. The file of the recovery table says which rows come from the
// contract; package codes says what is done.
func retries(file string) ([]retry, error) {
	table, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	contract := map[[2]string]bool{}
	for _, row := range rows {
		contract[[2]string{row[0], row[2]}] = row[len(row)-1] == "contract"
	}
	var all []retry
	for _, call := range []codes.Call{codes.CreateMachine, codes.DeleteMachine, codes.GetMachineStatus, codes.ListMachines} {
		for code := range codes.All() {
			r := codes.RecoveryFor(call, code)
			if !contract[[2]string{call.String(), code.Contract()}] || r.AutoRetry || r.Class == codes.None || r.Remedy == codes.UseAnotherName {
				continue
			}
			least, quota := time.Duration(0), machine.DefaultPolicy().QuotaRetry
			if call == codes.ListMachines && code == codes.Unimplemented { // see safety/orphan
				least = safety.DefaultPolicy().OrphanPeriod
			}
			var first []string
			for n := range int(r.Quick) + 1 {
				first = append(first, duration(max(r.Backoff(n+1, quota), least)))
			}
			longest := max(r.Backoff(math.MaxInt32, quota), least)
			all = append(all, retry{call.String(), code.Contract(), strings.Join(first, ", "), duration(longest)})
		}
	}
	return all, nil
}

// slowing lists the codes of CreateMachine that make the whole class back off.
func slowing() string {
	var names []string
	for code := range codes.All() {
		if backoff.Slows(code) {
			names = append(names, code.Contract())
		}
	}
	return strings.Join(names, ", ")
}

// phases lists the phases of a pool.
func phases() string {
	var names []string
	for _, p := range []machinepool.Phase{
		machinepool.PhasePending, machinepool.PhaseProvisioning, machinepool.PhaseProvisioned,
		machinepool.PhaseRunning, machinepool.PhaseDeleting, machinepool.PhaseFailed,
	} {
		names = append(names, "`"+string(p)+"`")
	}
	return strings.Join(names, ", ")
}

// duration returns a text such as "2 h" or "90 s", in the largest unit without a fraction.
func duration(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

// page returns docs/reference/contract.md.
func page(table string) ([]byte, error) {
	again, err := retries(table)
	if err != nil {
		return nil, err
	}
	failed := codes.RecoveryFor(codes.DeleteMachine, codes.Unknown).Class
	t, err := template.New("contract").Option("missingkey=error").Funcs(template.FuncMap{"dur": duration}).Parse(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Retries": again, "Slowing": slowing(), "Phases": phases(),
		"Machine": machine.DefaultPolicy(), "Set": machineset.DefaultPolicy(), "Safety": safety.DefaultPolicy(),
		"Priority": (&machine.Machine{}).Priority(machineset.DefaultPolicy().Keys.Priority), "DeleteWithin": machineset.DeleteWithin,
		"NamesFor":   2*machineset.DefaultPolicy().RequestTimeout + time.Second,
		"DrainFirst": failed.Period(0), "DrainLongest": failed.Backoff(math.MaxInt32, 0),
	})
	return out.Bytes(), err
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: contract DIR TABLE, where DIR is docs/reference/ and TABLE is codes/testdata/recovery.csv")
	}
	text, err := page(args[1])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "contract.md"), text, 0o644)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}
