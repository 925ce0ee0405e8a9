package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl as the administrator, and returns its standard output. If it fails, the error has
// its standard error.
func (l *Lab) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	always := []string{"--kubeconfig=" + l.Kubeconfig("admin"), "--cache-dir=" + filepath.Join(l.Dir, "kubectl")}
	c := exec.CommandContext(ctx, l.KubectlPath(), append(always, args...)...)
	c.Stdin = strings.NewReader(stdin)
	var out, stderr strings.Builder
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out.String(), nil
}

// KubectlPath returns the path of a kubectl of the server's version. It is a link to the server's program.
func (l *Lab) KubectlPath() string { return filepath.Join(filepath.Dir(l.server.Path), "kubectl") }

// Kubeconfig returns the path of a user's kubeconfig. The user is admin or one from the flags of Start.
func (l *Lab) Kubeconfig(user string) string { return filepath.Join(l.Dir, user+".kubeconfig") }
