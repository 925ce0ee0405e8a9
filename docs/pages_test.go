// Package docs_test runs the code and the commands on the pages.
package docs_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPages follows each page, block by block, beginning with an empty folder:
//
//   - "```go main.go", or another language and a file: the file is written.
//   - "```sh": the commands are run, in the directory where the last commands ended.
//   - "```text" after "```sh": the commands must have printed this. "..." stands for any text; on a line of
//     its own, for any lines.
//   - "```go" without a file: the code must be in a Go file beside the page, or in a file of the page.
//
// A page may begin in "the folder that you made in [another page](another.md)". Pages expect a clone of the
// library at ../millwright; this repository is used instead.
func TestPages(t *testing.T) {
	pages := []string{"../README.md"}
	for _, pattern := range []string{"start/*.md", "how-to/*.md"} {
		more, err := filepath.Glob(pattern)
		check(t, err)
		pages = append(pages, more...)
	}
	withCode := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		check(t, err)
		blocks := fence.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			continue
		}
		if before := continues.FindSubmatch(text); before != nil {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(page), string(before[1])))
			check(t, err)
			blocks = append(fence.FindAllStringSubmatch(string(text), -1), blocks...)
		}
		withCode++
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			slow := strings.Contains(string(text), "KUBEBUILDER_ASSETS")
			if slow && testing.Short() {
				t.Skip("it builds controller-runtime and an API server")
			}
			follow(t, page, blocks)
		})
	}
	if withCode < 2 {
		t.Errorf("only %d pages have code", withCode)
	}
}

var (
	// fence matches a fenced block: language, file, text.
	fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([^\n]+))?\n(.*?)^```$")
	// continues matches a link to the page in whose folder a page begins.
	continues = regexp.MustCompile(`the folder that you made\s+in \[[^]]+\]\(([^)]+)\)`)
)

// follow follows the blocks of a page.
func follow(t *testing.T, page string, blocks [][]string) {
	root, err := filepath.Abs("..")
	check(t, err)
	dir, known, printed := t.TempDir(), codeBeside(t, page), ""
	for _, block := range blocks {
		language, file, text := block[1], block[2], block[3]
		switch {
		case file != "":
			formatted, err := []byte(text), error(nil)
			if language == "go" {
				formatted, err = format.Source([]byte(text))
			}
			if err != nil || string(formatted) != text {
				t.Errorf("%s is not formatted by gofmt: %v", file, err)
			}
			check(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			known += unindented(text)
		case language == "sh":
			dir, printed = run(t, dir, strings.ReplaceAll(text, "../millwright", root))
		case language == "text" && printed != "":
			if !printsLike(text, printed) {
				t.Errorf("the page says that the commands print:\n%s\nbut they print:\n%s", text, printed)
			}
			printed = ""
		case language == "go" && !strings.Contains(known, unindented(text)):
			t.Errorf("this code is in no file of the page, and in no Go file beside it:\n%s", text)
		}
	}
}

// run runs commands in a directory. It returns the directory where they end, and what they print.
func run(t *testing.T, dir, commands string) (end, printed string) {
	t.Helper()
	ends := filepath.Join(t.TempDir(), "ends")
	shell := exec.CommandContext(t.Context(), "sh", "-euc", commands+"\npwd -P >'"+ends+"'")
	shell.Dir, shell.Env = dir, append(os.Environ(), "GOWORK=off", "PWD="+dir)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	at, err := os.ReadFile(ends)
	check(t, err)
	return strings.TrimSpace(string(at)), string(out)
}

// printsLike reports whether the commands printed the text of a page.
func printsLike(page, printed string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(page))
	pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.\n?`).ReplaceAllString(pattern, `(?s:.*)`)
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `.*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(printed))
}

// codeBeside returns the code of the Go files in the directory of a page, and of the examples for
// Kubernetes.
func codeBeside(t *testing.T, page string) (code string) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(page), "*.go"))
	check(t, err)
	more, err := filepath.Glob("../cmd/millwright-manager/examples/*.go")
	check(t, err)
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		check(t, err)
		code += unindented(string(text))
	}
	return code
}

// unindented returns code without its indentation.
func unindented(code string) string { return regexp.MustCompile(`(?m)^\s+`).ReplaceAllString(code, "") }

func TestPrintsLike(t *testing.T) {
	for _, c := range []struct {
		page, printed string
		want          bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\nb\n", "a\n", false},
		{"a\n", "a\nb\n", false},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\nd\n", "a\nb\nc\n", false},
		{"ok ... s\n", "ok 0.1 s\n", true},
		{"ok ... s\n", "ok\n s\n", false},
	} {
		if got := printsLike(c.page, c.printed); got != c.want {
			t.Errorf("printsLike(%q, %q) is %v", c.page, c.printed, got)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
