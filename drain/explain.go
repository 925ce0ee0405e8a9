package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// Explain returns a forecast as plain text: a summary line, a table of its steps (which pod is evicted when, what
// it waits for, and which pods stay), and the pods that would be left at the end. Control characters in names
// and messages are escaped, see codes.Printable.
func Explain(f *Forecast) string {
	var out strings.Builder
	out.WriteString(summary(f))
	rows := [][4]string{{"WHEN", "WHAT", "POD", "WHY"}}
	var stays [][4]string
	for i := range f.Steps {
		s := &f.Steps[i]
		pod := codes.Printable(s.Pod.String())
		if pod == "" {
			pod = "-"
		}
		row := [4]string{elapsed(s.At), string(s.Action), pod, codes.Printable(s.Why.String() + refusers(s.Budgets))}
		if s.Action == Stay {
			row[0] = "-"
			stays = append(stays, row)
			continue
		}
		rows = append(rows, row)
	}
	table(&out, append(rows, stays...))
	if len(f.Left) > 0 {
		out.WriteString("\nNot gone:\n")
		for i := range f.Left {
			fmt.Fprintf(&out, "  %s\n", codes.Printable(f.Left[i].Why.String()))
		}
	}
	return out.String()
}

// summary returns one line about a forecast.
func summary(f *Forecast) string {
	count := map[Action]int{}
	blocked := map[string]bool{}
	for i := range f.Steps {
		s := &f.Steps[i]
		count[s.Action]++
		if s.Action == Wait && refused[s.Why.Reason] {
			blocked[s.Pod.String()] = true
		}
	}
	parts := []string{counted(f.Pods, "pod")}
	for _, p := range []struct {
		n    int
		what string
	}{
		{count[Evict], "evicted"},
		{count[Delete], "deleted"},
		{count[Kill], "killed"},
		{count[Stay], "left alone"},
		{len(blocked), "refused at first"},
	} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what)
		}
	}
	end := "ends after " + span(f.Took)
	if !f.Done {
		end = "no end in sight after " + span(f.Took)
	}
	return fmt.Sprintf("node %s: %s; %s\n\n", codes.Printable(cmp.Or(f.Node, `""`)), strings.Join(parts, ", "), end)
}

// refused are the reasons of pods whose eviction a budget or a server refuses.
var refused = map[decision.Reason]bool{
	reasonBudget: true, reasonUnhealthy: true, reasonBudgets: true, reasonBudgetStale: true, reasonMisconfigured: true, reasonRefused: true, reasonFailed: true,
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// table writes rows in aligned columns.
func table(out *strings.Builder, rows [][4]string) {
	var widths [3]int
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s  %-*s  %-*s  %s", widths[0], row[0], widths[1], row[1], widths[2], row[2], row[3])
		out.WriteString(strings.TrimRight(line, " "))
		out.WriteByte('\n')
	}
}

// Budgets returns the names of the budgets that refuse evictions in a forecast, each once, in order.
func (f *Forecast) Budgets() []string {
	var names []string
	for i := range f.Steps {
		for _, k := range f.Steps[i].Budgets {
			names = append(names, k.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
