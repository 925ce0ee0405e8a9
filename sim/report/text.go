package report

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/sim/preview"
)

// TextOptions say how a table is written. The zero value has good defaults.
type TextOptions struct {
	// Rows is how many steps the table of Text shows at most. If there are more, it leaves out the
	// middle, and a line says so. At least 2. Zero or less: all. HistoryText uses Rows in its own way.
	Rows int
}

// Text writes a timeline as a table: a row for each step, with the counts that the step was decided
// on, and a last row for the end. The error is the writer's.
func Text(w io.Writer, t *preview.Timeline, o TextOptions) error {
	rows := [][]string{{"TIME", "OLD", "NEW", "AVAIL", "TOTAL", "BOUNDS", "WHAT", "WHY"}}
	bounds := decimal(t.Floor) + ".." + decimal(t.Ceiling)
	first, second := leftOut(len(t.Steps), o.Rows)
	for i := range t.Steps {
		if i >= first && i < second {
			if i == first {
				rows = append(rows, []string{"...", "", "", "", "", "", counted(second-first, "step") + " left out", ""})
			}
			continue
		}
		s := &t.Steps[i]
		what, why := describeStep(s)
		rows = append(rows, append(numbers(clock(s.After), s.Seen, bounds), what, why))
	}
	var last preview.Counts
	if n := len(t.Samples); n > 0 {
		last = t.Samples[n-1].Counts
	}
	what, why := ended(t)
	rows = append(rows, append(numbers(clock(t.Duration), last, bounds), what, why))
	_, err := io.WriteString(w, aligned(rows))
	return err
}

// leftOut returns which steps are left out: from the first index up to, not including, the second.
func leftOut(steps, rows int) (from, to int) {
	rows = max(rows, 0)
	if rows == 0 || steps <= max(rows, 2) {
		return steps, steps
	}
	rows = max(rows, 2)
	return (rows + 1) / 2, steps - rows/2
}

func numbers(at string, c preview.Counts, bounds string) []string {
	return []string{at, decimal(c.Old), decimal(c.New), decimal(c.Available()), decimal(c.Total()), bounds}
}

// describeStep returns what a step orders, and why.
func describeStep(s *preview.Step) (what, why string) {
	age := "old "
	if s.New {
		age = "new "
	}
	name := age + printable(s.Set)
	if s.Machines.Reason != (decision.Reason{}) {
		return name + ": " + verb(s.Machines.Reason, s.Machines.Count), printable(s.Machines.String())
	}
	switch s.Why.Reason {
	case deployment.ReasonScale:
		return name + " " + decimal(s.From) + " -> " + decimal(s.To), printable(deployment.RolloutOf(s.Why).String())
	case deployment.ReasonSelect:
		return name + ": update " + decimal(deployment.RolloutOf(s.Why).Count), printable(deployment.RolloutOf(s.Why).String())
	case deployment.ReasonRepair, deployment.ReasonMoveTo, deployment.ReasonMoveFrom, deployment.ReasonMoveBack:
		what = name + " " + decimal(s.From) + " -> " + decimal(s.To)
	case deployment.ReasonExchange:
		what = name + ": class " + printable(s.Why.Detail)
	case deployment.ReasonCreate:
		what = "create " + name
	case deployment.ReasonDelete, deployment.ReasonPrune:
		what = "delete " + name
	case deployment.ReasonRelease:
		what = "release " + name
	case deployment.ReasonRollbackDone:
		what = "roll back to " + printable(s.Set)
	case deployment.ReasonRollbackRevisionNotFound, deployment.ReasonRollbackTemplateUnchanged,
		deployment.ReasonRollbackInvalid:
		what = "refuse rollback"
	default:
		what = "change " + name
	}
	return what, printable(s.Why.String())
}

// verb returns what a set does with so many of its machines.
func verb(reason decision.Reason, n int64) string {
	switch reason {
	case machineset.ReasonDeleteFailed:
		return "replace " + decimal(n)
	case machineset.ReasonDeleteAll:
		return "delete " + decimal(n)
	case machineset.ReasonReleasing:
		return "release " + decimal(n)
	}
	return "change " + decimal(n)
}

// ended returns the last row: the outcome, and its reason.
func ended(t *preview.Timeline) (what, why string) {
	if t.Complete {
		return "complete", printable(t.Ending.Waits.String())
	}
	return "not complete", printable(t.Ending.String())
}

// Summary returns in a few lines the outcome, and whether the bounds were kept. Each line ends with a
// newline.
func Summary(t *preview.Timeline) string {
	created := counted(t.Created, "machine") + " created"
	if t.Failed > 0 {
		created += ", " + decimal(t.Failed) + " of them failed"
	}
	var b strings.Builder
	b.WriteString(heading(t) + "\n")
	b.WriteString(conclusion(t) + "\n")
	b.WriteString(created + ", " + decimal(t.Deleted) + " deleted\n")
	if t.Selected > 0 {
		b.WriteString(counted(t.Selected, "machine") + " selected to be updated in place, " + decimal(t.Moved) + " of them moved\n")
	}
	if t.Updated > 0 {
		b.WriteString(counted(t.Updated, "VM") + " changed to what the class says\n")
	}
	b.WriteString("available: never below " + decimal(t.LowestAvailable) + " (floor " + decimal(t.Floor) + "); in all: never above " +
		decimal(t.HighestTotal) + " (ceiling " + decimal(t.Ceiling) + ")")
	if most := maxWithTerminating(t); most > int64(t.HighestTotal) {
		b.WriteString(", " + decimal(most) + " with terminating ones")
	}
	b.WriteString("\n")
	if t.Overdue > 0 {
		b.WriteString("progress deadline exceeded after " + clock(t.Overdue) + "\n")
	}
	return b.String()
}

// maxWithTerminating returns the highest number of machines, including terminating ones: the quota
// that a provider has to allow.
func maxWithTerminating(t *preview.Timeline) int64 {
	most := int64(0)
	for i := range t.Samples {
		most = max(most, int64(t.Samples[i].Total())+int64(t.Samples[i].Terminating))
	}
	return most
}

// heading names the deployment that is rolled, and its bounds.
func heading(t *preview.Timeline) string {
	return printable(t.Key.String()) + ": " + counted(t.Replicas, "machine") + " wanted, surge " + decimal(t.Surge) +
		", unavailable " + decimal(t.Unavailable)
}

// conclusion returns the outcome.
func conclusion(t *preview.Timeline) string {
	switch {
	case t.Complete && len(t.Steps) == 0 && t.Duration == 0:
		return "nothing to do"
	case t.Complete:
		return "complete after " + clock(t.Duration)
	}
	return printable(t.Ending.String())
}

// printable replaces each character of s that is invisible or breaks a line by a question mark.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// aligned lays rows out in columns, without trailing spaces. All columns but the last two are numbers
// and right-aligned.
func aligned(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line += "  "
			}
			if i < len(row)-2 {
				line += pad + cell
			} else {
				line += cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
