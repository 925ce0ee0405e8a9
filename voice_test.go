package millwright_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expression is one that readers do not know, or read twice.
type expression struct {
	text    *regexp.Regexp
	instead string
	in      []scope
}

// scope is a kind of prose.
type scope int

const (
	comments scope = iota // of Go files, without the names that they begin with
	pages                 // Markdown, without code
)

var everywhere = []scope{comments, pages}

// expressions are not used. Add one when the last use is gone, or with the uses that are left in
// unfinished.
var expressions = []expression{
	{phrase("tells whether"), "reports whether", everywhere},
	{phrase("whoever"), "a plain subject: the caller, the set, the user", everywhere},
	{phrase("anew"), "again", everywhere},
	{phrase("for ever"), "permanently, endlessly", everywhere},
	{phrase("(comes?|came|coming) to rest"), "converges", everywhere},
	{phrase("befall(s|en)?|befell"), "happens to", everywhere},
	{phrase("is had"), "an active verb", everywhere},
}

// unfinished is how many uses are left below a directory, or in a page. The numbers only get
// smaller: lower them with each change, and remove the line when none is left.
var unfinished = map[string]int{
	"machine":    13,
	"machineset": 3,
	"manager":    15,
}

// phrase matches whole words in any case.
func phrase(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + words + `)\b`)
}

// TestVoice: prose in comments and pages has none of the expressions.
func TestVoice(t *testing.T) {
	read := loadTree(t)
	found := map[string][]string{}
	for _, s := range read.sources {
		if !s.generated() {
			within := unfinishedOf(s.path)
			found[within] = append(found[within], commentFaults(s)...)
		}
	}
	for _, page := range read.pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		within := unfinishedOf(page)
		found[within] = append(found[within], pageFaults(page, string(text))...)
	}
	for _, within := range slices.Sorted(maps.Keys(unfinished)) {
		if n := len(found[within]); n < unfinished[within] {
			t.Errorf("%s has %d expressions left, write %d in unfinished in place of %d", within, n, n, unfinished[within])
		}
	}
	for within, faults := range found {
		if len(faults) <= unfinished[within] {
			continue
		}
		if within != "" {
			t.Errorf("%s has %d expressions, %d are left from before", within, len(faults), unfinished[within])
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
}

// unfinishedOf returns the entry of unfinished that a file belongs to, or nothing.
func unfinishedOf(file string) string {
	for at := file; at != "."; at = path.Dir(at) {
		if unfinished[at] > 0 {
			return at
		}
	}
	return ""
}

// commentFaults returns one sentence for each expression in the comments of a file.
func commentFaults(s *source) []string {
	var found []string
	for _, group := range s.file.Comments {
		found = append(found, proseFaults(s.at(group.Pos()), withoutName(s, group), comments)...)
	}
	return found
}

// withoutName returns the text of a comment without the name of the declaration that it begins with.
func withoutName(s *source, group *ast.CommentGroup) string {
	text := group.Text()
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if token.IsIdentifier(first) && declares(s, first) {
		return rest
	}
	return text
}

func declares(s *source, name string) bool {
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == name {
			return true
		}
	}
	return false
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
)

// pageFaults returns one sentence for each expression in a page.
func pageFaults(page, text string) []string {
	return proseFaults(page, codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), ""), pages)
}

// proseFaults returns one sentence for each expression in a text, wherever its lines break.
func proseFaults(at, text string, kind scope) []string {
	text = strings.Join(strings.Fields(text), " ")
	var found []string
	for _, e := range expressions {
		if !slices.Contains(e.in, kind) {
			continue
		}
		for _, match := range e.text.FindAllString(text, -1) {
			found = append(found, fmt.Sprintf("%s: %q; write %s", at, match, e.instead))
		}
	}
	return found
}

// TestVoiceBites: each expression is found in any case and across lines, and only in prose.
func TestVoiceBites(t *testing.T) {
	cases := []struct {
		comment, page string
		faults        int
	}{
		{"f tells\n// whether it is.", "It tells\nwhether it is.", 1},
		{"Whoever asks.", "Whoever asks, whoever answers.", 1},
		{"f begins anew.", "It begins anew.", 1},
		{"f waits for ever.", "It waits for ever.", 1},
		{"f comes to rest.", "It came to rest.", 1},
		{"f does what befalls it.", "What befell it.", 1},
		{"f is had by all.", "It is had.", 1},
		{"f reports whether it can tell whether it is.", "`anew`\n\n```\nanew\n```\n", 0},
		{"anew makes another one.", "renewed, forever", 0},
	}
	for _, c := range cases {
		s, err := parseSource("a.go", ".", "package m\n\n// "+c.comment+"\nfunc anew() string { return \"anew\" }\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := commentFaults(s); len(got) != c.faults {
			t.Errorf("%q: %d faults, want %d: %q", c.comment, len(got), c.faults, got)
		}
		if got := pageFaults("a.md", c.page); min(len(got), 1) != c.faults {
			t.Errorf("%q: %d faults, want %d: %q", c.page, len(got), c.faults, got)
		}
	}
}
