package millwright_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// expression is one that readers do not know, or read twice.
type expression struct {
	text    *regexp.Regexp
	instead string
}

// expressions are not used in prose: in comments of Go files, without the names that they begin with,
// in messages, and in Markdown, without code. Add one when the last use is gone.
var expressions = []expression{
	{phrase("tells whether"), "reports whether"},
	{phrase("whoever"), "a plain subject: the caller, the set, the user"},
	{phrase("anew"), "again"},
	{phrase("for ever"), "permanently, endlessly"},
	{phrase("(comes?|came|coming) to rest"), "converges"},
	{phrase("befall(s|en)?|befell"), "happens to"},
	{phrase("is had"), "an active verb"},
	{phrase("whatever"), "any, for any, regardless of"},
	{phrase("by now"), "now, so far"},
	{phrase("as ever"), "as usual"},
	{phrase("in (its|the|their) stead"), "instead"},
	{phrase("(looks?|looked|looking) after"), "reconcile, manage, decide about"},
	{phrase("by and by"), "in the end"},
}

// inComments are not used in comments. Pages still have them: the tables that are drawn from the
// descriptions of transitions, those of settings, invariants, and the changelog.
var inComments = []expression{
	{phrase("nobody"), "without an owner, no machine, no other program: say who"},
	{phrase("(comes?|came) to be"), "is created, became"},
	{phrase("for want of"), "because there is no"},
	{phrase("in the midst of"), "during"},
}

// phrase matches whole words in any case.
func phrase(words string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + words + `)\b`)
}

// TestVoice: prose in comments and pages has none of the expressions.
func TestVoice(t *testing.T) {
	read := loadTree(t)
	var faults []string
	for _, s := range read.sources {
		if !s.generated() {
			faults = append(faults, commentFaults(s)...)
		}
		if s.path != "voice_test.go" {
			faults = append(faults, messageFaults(s)...)
		}
	}
	for _, page := range read.pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, pageFaults(page, string(text))...)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// commentFaults returns one sentence for each expression in the comments of a file.
func commentFaults(s *source) []string {
	var found []string
	for _, group := range s.file.Comments {
		if !strings.HasPrefix(group.Text(), "Output:") { // what an example prints is no prose
			found = append(found, proseFaults(s.at(group.Pos()), withoutName(s, group), slices.Concat(expressions, inComments))...)
		}
	}
	return found
}

// messageFaults returns one sentence for each expression in the strings of a file: messages, reasons,
// usage, and what stories say.
func messageFaults(s *source) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil {
			found = append(found, proseFaults(s.at(lit.Pos()), text, expressions)...)
		}
		return true
	})
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
	return proseFaults(page, codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), ""), expressions)
}

// proseFaults returns one sentence for each expression in a text, wherever its lines break.
func proseFaults(at, text string, unwanted []expression) []string {
	text = strings.Join(strings.Fields(text), " ")
	var found []string
	for _, e := range unwanted {
		for _, match := range e.text.FindAllString(text, -1) {
			found = append(found, fmt.Sprintf("%s: %q; write %s", at, match, e.instead))
		}
	}
	return found
}

// TestVoiceOfComments: some expressions are found in comments only, and what an example prints is free.
func TestVoiceOfComments(t *testing.T) {
	s, err := parseSource("a_test.go", ".", "package m\n\n// f is nobody's.\nfunc f() {\n\t// Output:\n\t// nobody, whatever\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := commentFaults(s); len(got) != 1 {
		t.Errorf("%d faults, want 1: %q", len(got), got)
	}
	if got := pageFaults("a.md", "It is nobody's."); len(got) != 0 {
		t.Errorf("no fault wanted: %q", got)
	}
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
		{"f returns, whatever\n// is given.", "Whatever it is.", 1},
		{"f is done by now.", "It is done by\nnow.", 1},
		{"f works as ever.", "It works as ever.", 1},
		{"f looks after it.", "It is looked after.", 1},
		{"f ends by and by.", "It ends by and by.", 1},
		{"f goes in its stead.", "It goes in their stead.", 1},
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
		if got := messageFaults(s); len(got) != 1 {
			t.Errorf("%d faults in a message, want 1: %q", len(got), got)
		}
		if got := pageFaults("a.md", c.page); min(len(got), 1) != c.faults {
			t.Errorf("%q: %d faults, want %d: %q", c.page, len(got), c.faults, got)
		}
	}
}
