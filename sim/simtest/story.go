package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millwright-go/millwright/codes"
)

// maxStory is how many lines a report with its story has at most.
const maxStory = 60

// story chooses the lines that explain a violation.
type story struct {
	lines    []line
	subjects []string // names and IDs of the machines and VMs that the violation is about
	first    int      // the first line that names a subject
	last     []int    // for each machine among the subjects, the line of the last call about it
	guilty   int      // the line of the call to blame: the last one about a subject, or the last of all; -1: none
	ranks    []int    // the rank of each line
}

// newStory finds out what a violation is about. It looks for names in the violation's text, because
// violations of a user's properties have nothing else.
func newStory(lines []line, rule, what string) *story {
	s := &story{lines: lines, guilty: -1}
	for _, also := range namesByMachine(lines) {
		if slices.ContainsFunc(also, func(word string) bool { return mentions(what, word) }) {
			s.subjects = append(s.subjects, also...)
		}
	}
	slices.Sort(s.subjects)
	s.findCalls(rule)
	s.ranks = make([]int, len(lines))
	for i := range lines {
		s.ranks[i] = s.rank(i)
	}
	return s
}

// namesByMachine returns, for each machine that the driver was called about, its name and the IDs of its VMs.
func namesByMachine(lines []line) map[string][]string {
	words := map[string][]string{}
	for i := range lines {
		c := lines[i].call
		if c == nil {
			continue
		}
		name, id := c.about()
		if name == "" {
			continue
		}
		for _, word := range []string{name, id, c.id} {
			if word != "" && !slices.Contains(words[name], word) {
				words[name] = append(words[name], word)
			}
		}
	}
	return words
}

// findCalls finds the last calls about the subjects, and the call to blame.
func (s *story) findCalls(rule string) {
	last, all, blamed := map[string]int{}, -1, -1
	for i := range s.lines {
		c := s.lines[i].call
		now := c != nil && c.over == s.lines[len(s.lines)-1].at
		if c == nil || !c.answered && !now {
			continue // the manager died during this call, before the violation
		}
		all = i
		about := s.isAbout(c)
		if about {
			name, _ := c.about()
			s.guilty, last[name] = i, i
		}
		if breaks(c, rule) && (about || now && c.machine == nil) {
			blamed = i
		}
	}
	switch {
	case blamed >= 0:
		s.guilty = blamed
	case s.guilty < 0:
		s.guilty = all
	}
	s.last = slices.Sorted(maps.Values(last))
	s.first = max(0, slices.IndexFunc(s.lines, func(l line) bool { return s.named(l.text) }))
}

// breaks reports whether a call can break a rule: that its answers are true or, if it is a deletion, that
// nothing is left in the end.
func breaks(c *call, rule string) bool {
	return rule == ruleOf(c.method) || rule == ruleLeft && c.method == codes.DeleteMachine
}

// named reports whether a text names a subject.
func (s *story) named(text string) bool {
	return slices.ContainsFunc(s.subjects, func(word string) bool { return mentions(text, word) })
}

// maxLastCalls is for how many machines lastCalls names the last call.
const maxLastCalls = 5

// lastCalls returns, for each machine that the violation names, the last call about it and its answer.
func (s *story) lastCalls() string {
	if s.guilty < 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("> marks the call to blame: the last one about what is violated, or the last of all.\n")
	for _, i := range s.last[max(0, len(s.last)-maxLastCalls):] {
		fmt.Fprintf(&b, "Last call: %s, at %s.\n", s.lines[i].text, s.lines[i].at.Round(time.Millisecond))
	}
	return b.String()
}

// isAbout reports whether a call is about a subject.
func (s *story) isAbout(c *call) bool {
	name, id := c.about()
	return slices.Contains(s.subjects, name) || slices.Contains(s.subjects, id) || slices.Contains(s.subjects, c.id)
}

// rank returns how important a line is for the explanation: 0 is the most important.
func (s *story) rank(i int) int {
	l := &s.lines[i]
	switch {
	case i == s.guilty || i == len(s.lines)-1:
		return 0
	case l.call != nil && s.isAbout(l.call):
		return 1
	case s.named(l.text) && strings.Count(l.text, ": ") > 1: // it also gives a reason
		return 2
	case s.named(l.text), i > s.first && (strings.HasPrefix(l.text, "step: ") || !strings.Contains(l.text, ": ")): // steps of users, and faults
		return 3
	}
	return 4
}

// chosen returns which lines are shown, at most limit including those for gaps: the most important ones,
// and among equally important ones the last.
func (s *story) chosen(limit int) []bool {
	order := make([]int, len(s.lines))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.ranks[a] - s.ranks[b] })
	shown, n, gaps := make([]bool, len(s.lines)), 0, 1 // one gap: no line is shown yet
	for _, i := range order {
		if len(s.subjects) > 0 && s.ranks[i] > 3 {
			break
		}
		n, gaps = n+1, gaps+gapsBy(shown, i)
		if n+gaps > limit {
			break
		}
		shown[i] = true
	}
	return shown
}

// gapsBy returns by how much the number of gaps grows if line i is shown, too.
func gapsBy(shown []bool, i int) int {
	before := i > 0 && !shown[i-1]
	after := i < len(shown)-1 && !shown[i+1]
	n := 0
	if before {
		n++
	}
	if after {
		n++
	}
	return n - 1
}

// text returns the story in at most limit lines. Zero means all lines.
func (s *story) text(limit int) string {
	var b strings.Builder
	shown := make([]bool, len(s.lines))
	for i := range shown {
		shown[i] = limit == 0
	}
	if limit > 0 {
		shown = s.chosen(limit)
	}
	skipped := 0
	for i, l := range s.lines {
		if !shown[i] {
			skipped++
			continue
		}
		skip(&b, skipped)
		skipped = 0
		mark := "  "
		if i == s.guilty {
			mark = "> "
		}
		text, _, _ := strings.Cut(l.text, "\n") // the report shows stacks elsewhere
		fmt.Fprintf(&b, "%s%12s  %s\n", mark, l.at.Round(time.Millisecond), text)
	}
	skip(&b, skipped)
	return b.String()
}

func skip(b *strings.Builder, n int) {
	switch {
	case n == 1:
		fmt.Fprintf(b, "  %12s  … 1 line of others\n", "")
	case n > 1:
		fmt.Fprintf(b, "  %12s  … %d lines of others\n", "", n)
	}
}

// mentions reports whether a text contains a name, and not only as part of a longer name.
func mentions(text, name string) bool {
	if name == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(name):])
		if !inName(before) && !inName(after) {
			return true
		}
		at = i + 1
	}
}

// inName reports whether a character may be part of a name.
func inName(r rune) bool {
	return r == '-' || r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
