// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// Command returns "setpoint assets".
func Command(w *cli.World) *cobra.Command {
	var binary, output string
	c := &cobra.Command{
		Use:   "assets",
		Short: "Print a directory for KUBEBUILDER_ASSETS: tests with envtest need no download",
		Long: `Print the path of a directory with kube-apiserver, etcd and kubectl, the real ones, for
tests that start them with envtest of controller-runtime. Nothing is downloaded.

The three are links to setpoint-controlplane, which is each of them when it is started
under its name, with all of its flags. The directory is in the cache directory of the
user and stays there; the same one is printed until setpoint-controlplane is
somewhere else.`,
		Example: `  # tests that use envtest
  KUBEBUILDER_ASSETS="$(setpoint assets)" go test ./...

  # for all commands of a shell
  eval "$(setpoint assets --output env)"

  # which Kubernetes it is
  "$(setpoint assets)/kube-apiserver" --version`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			line, known := lines[output]
			if !known {
				return fmt.Errorf("--output=%s: want path or env", output)
			}
			dir, err := prepare(c.Context(), w, binary)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(w.Stdout, line(dir))
			return err
		},
	}
	f := c.Flags()
	cli.ControlPlaneFlag(f, &binary)
	f.StringVarP(&output, "output", "o", "path", "path or env, a line for a shell to evaluate")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"path", "env"}, cobra.ShellCompDirectiveNoFileComp))
	cli.ExplainFlagErrors(c, nil)
	return c
}

// lines are what is printed, by the value of --output.
var lines = map[string]func(dir string) string{
	"path": func(dir string) string { return dir },
	"env": func(dir string) string {
		return "export KUBEBUILDER_ASSETS='" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	},
}

// prepare returns the directory, with its links to setpoint-controlplane.
func prepare(ctx context.Context, w *cli.World, binary string) (dir string, err error) {
	if binary, err = w.FindControlPlane(binary); err != nil {
		return "", err
	}
	// Links that are below a cache directory must not depend on where the command runs.
	if binary, err = filepath.Abs(binary); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for a directory for links to %s: %w", binary, err)
	}
	if err := try(ctx, binary, patience); err != nil {
		return "", err
	}
	dir = directoryFor(cache, binary)
	if err := link(dir, binary); err != nil {
		return "", fmt.Errorf("making links to %s: %w", binary, err)
	}
	return dir, nil
}

// patience is how long the binary may take to print its version. It takes less than a second,
// unless the machine is very busy or has to read the binary from a slow disk.
const patience = time.Minute

// try starts the binary as kube-apiserver, for its version. envtest would not say why the binary
// cannot be started, or that it is one that does not know the names yet.
func try(ctx context.Context, binary string, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(bounded, binary, "--version")
	cmd.Args[0] = apiServer
	cmd.WaitDelay = time.Second // a process that the binary has started may keep the output open
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("%s is no setpoint-controlplane: started under the name %s, with --version, it did not end within %s; "+
			"--controlplane names another one", binary, apiServer, patience)
	case err != nil && !errors.As(err, &exit):
		return err
	case err != nil || !bytes.HasPrefix(out, []byte("Kubernetes v")):
		first, _, _ := bytes.Cut(out, []byte("\n"))
		return fmt.Errorf("%s is no setpoint-controlplane of this version: started under the name %s, with --version, it prints %q; "+
			"\"make setpoint-controlplane\" in a checkout of Setpoint builds one", binary, apiServer, first)
	}
	return nil
}
