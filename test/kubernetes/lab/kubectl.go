package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl as the administrator and returns what it prints. If it fails, the error has
// its other output.
func (l *Lab) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	always := []string{"--kubeconfig=" + l.Kubeconfig("admin"), "--cache-dir=" + filepath.Join(l.Dir, "kubectl")}
	c := exec.CommandContext(ctx, l.KubectlPath(), append(always, args...)...)
	c.Stdin = strings.NewReader(stdin)
	var out, complaints strings.Builder
	c.Stdout, c.Stderr = &out, &complaints
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, complaints.String())
	}
	return out.String(), nil
}

// KubectlPath returns the path of a kubectl that fits the server: another name of its program.
func (l *Lab) KubectlPath() string { return filepath.Join(filepath.Dir(l.server.Path), "kubectl") }

// Kubeconfig returns the path of the access of a user, admin or one that the flags of Start have
// named.
func (l *Lab) Kubeconfig(user string) string { return filepath.Join(l.Dir, user+".kubeconfig") }
