// Command ensure builds kubelab, unless the present source is built already. It prints the path of the
// program on standard output, and its progress on standard error. Several may run at the same time.
//
//	go -C test/kubelab run ./ensure
//
// The program is stored in the folder KUBELAB_CACHE, or else in the user's cache folder, in a subfolder
// named by a hash of the source, the modules and the Go release. The subfolder also has links named etcd,
// kube-apiserver and kubectl, so it can be used as KUBEBUILDER_ASSETS.
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	path, err := ensure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelab:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// program is the name of the program that is built.
const program = "kubelab"

// ensure builds the program if needed, and returns its path. The working directory must be the module's.
func ensure() (string, error) {
	key, err := fingerprint()
	if err != nil {
		return "", err
	}
	cache := os.Getenv("KUBELAB_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, program)
	}
	dir := filepath.Join(cache, key)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(dir, path)
}

// fingerprint returns a hash of everything that the program depends on.
func fingerprint() (string, error) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		return "", err
	}
	files = append(files, "go.mod", "go.sum")
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("run it in the folder of its module: %w", err)
		}
		fmt.Fprintln(h, name, len(text))
		_, _ = h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// lock waits until no other process builds the program, and keeps others waiting until unlock is called.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// build compiles the program. The file at path appears in one step.
func build(dir, path string) error {
	fmt.Fprintln(os.Stderr, "building the test API server (etcd, kube-apiserver, kube-scheduler, kubectl in one program):",
		"5 to 8 minutes on two cores the first time, seconds when it is in the build cache")
	began := time.Now()
	version, err := releaseOf("k8s.io/kubernetes")
	if err != nil {
		return err
	}
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return fmt.Errorf("k8s.io/kubernetes has the version %q", version)
	}
	const at = "-X k8s.io/component-base/version."
	flags := []string{"-s -w", at + "gitVersion=" + version, at + "gitMajor=" + parts[0], at + "gitMinor=" + parts[1], at + "gitTreeState=clean"}
	temp := path + ".tmp"
	if err := goCommand(os.Stderr, "build", "-o", temp, "-ldflags", strings.Join(flags, " "), "."); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "built in %s\n", time.Since(began).Round(time.Second))
	return os.Rename(temp, path)
}

// releaseOf returns the version of a module that this one requires.
func releaseOf(module string) (string, error) {
	var out strings.Builder
	err := goCommand(&out, "list", "-m", "-f", "{{.Version}}", module)
	return strings.TrimSpace(out.String()), err
}

func goCommand(out io.Writer, args ...string) error {
	c := exec.Command(cmp.Or(os.Getenv("GO"), "go"), args...) //nolint:gosec // the tool that built this
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	c.Stdout, c.Stderr = out, os.Stderr
	return c.Run()
}
