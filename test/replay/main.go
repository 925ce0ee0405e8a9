// Command replay compares the stories, goldens and scenarios of this tree with those of the commit
// in the file before. The tests of that commit made and checked those, and the tests of this tree
// check its own. So what a golden says on both sides is what the code of both sides does.
//
// Words may change: map.txt gives them as lines "old<TAB>new", applied in their order to the old
// text. A line that begins with "path" and a tab moves files. What is done may not change, except
// in the files in differences.txt, each with its cause.
//
//	go run ./test/replay
//
// It prints each file that differs and its first lines, and exits with 1 if there is any.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shown is how many lines of a difference are printed.
const shown = 6

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

func run() error {
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	root := strings.TrimSpace(string(top))
	dir := filepath.Join(root, "test", "replay")
	hash, err := os.ReadFile(filepath.Join(dir, "before"))
	if err != nil {
		return err
	}
	words, moved, err := mapping(filepath.Join(dir, "map.txt"))
	if err != nil {
		return err
	}
	causes, err := pairs(filepath.Join(dir, "differences.txt"))
	if err != nil {
		return err
	}
	r := replay{
		root: root, before: strings.TrimSpace(string(hash)), words: words, moved: moved, listed: make(map[string]string, len(causes)),
	}
	for _, c := range causes {
		r.listed[c[0]] = c[1]
	}
	return r.compareAll()
}

// replay compares the files of one commit with those of the tree.
type replay struct {
	root, before string
	words, moved *strings.Replacer
	listed       map[string]string // causes, of files that differ and were not met yet
	differ       int               // files that do, and are not listed
}

func (r *replay) compareAll() error {
	files, err := git("-C", r.root, "ls-tree", "-r", "--name-only", r.before)
	if err != nil {
		return fmt.Errorf("commit %s: %w (a shallow clone has no history: git fetch --unshallow)", r.before, err)
	}
	compared := 0
	for file := range strings.Lines(string(files)) {
		file = strings.TrimSpace(file)
		if !strings.Contains(file, "testdata/") || strings.Contains(file, "/fuzz/") {
			continue
		}
		if err := r.compare(file); err != nil {
			return err
		}
		compared++
	}
	for file := range r.listed {
		r.report(file, "listed in differences.txt, and was not there before")
	}
	fmt.Printf("%d files compared with %.12s, %d differ and are not listed\n", compared, r.before, r.differ)
	if r.differ > 0 {
		return errors.New("what is done has changed")
	}
	return nil
}

func (r *replay) compare(file string) error {
	old, err := git("-C", r.root, "show", r.before+":"+file)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(filepath.Join(r.root, r.moved.Replace(file)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cause, known := r.listed[file]
	delete(r.listed, file)
	want := r.words.Replace(string(old))
	switch same := err == nil && want == string(now); {
	case same && known:
		r.report(file, "listed in differences.txt, and does not differ")
	case same:
	case known:
		fmt.Printf("%s: differs: %s\n", file, cause)
	case err != nil:
		r.report(file, "is gone")
	default:
		r.report(file, "differs\n"+difference(want, string(now)))
	}
	return nil
}

func (r *replay) report(file, what string) {
	fmt.Printf("%s: %s\n", file, strings.TrimSuffix(what, "\n"))
	r.differ++
}

func git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// pairs returns the lines of a file as the texts before and after a tab. It ignores empty lines and
// lines that begin with #.
func pairs(file string) ([][2]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out [][2]string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		before, after, ok := strings.Cut(line, "\t")
		if !ok || before == "" {
			return nil, fmt.Errorf("%s:%d: no tab between two texts", filepath.Base(file), n)
		}
		out = append(out, [2]string{before, after})
	}
	return out, nil
}

// mapping reads the changes of words, and the moves of files.
func mapping(file string) (words, paths *strings.Replacer, err error) {
	all, err := pairs(file)
	if err != nil {
		return nil, nil, err
	}
	var texts, moves []string
	for _, p := range all {
		if p[0] != "path" {
			texts = append(texts, p[0], p[1])
			continue
		}
		from, to, ok := strings.Cut(p[1], "\t")
		if !ok {
			return nil, nil, fmt.Errorf("%s: path %s: no tab between two paths", filepath.Base(file), p[1])
		}
		moves = append(moves, from, to)
	}
	return strings.NewReplacer(texts...), strings.NewReplacer(moves...), nil
}

// difference returns the first lines in which two texts differ.
func difference(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out strings.Builder
	n := 0
	for i := 0; i < max(len(a), len(b)) && n < shown; i++ {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&out, "  line %d\n  - %s\n  + %s\n", i+1, x, y)
			n++
		}
	}
	return out.String()
}
