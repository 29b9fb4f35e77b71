// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// kubectlTimeout is for one call; waits of kubectl's own are shorter.
const kubectlTimeout = 2 * time.Minute

// Kubectl runs kubectl as administrator and returns what it wrote to standard
// output. The error holds what it wrote to standard error.
func (c *Cluster) Kubectl(args ...string) (string, error) {
	path, err := Binary("kubectl")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), kubectlTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // a plugin may hold the output of a kubectl that was killed
	// HOME is where kubectl caches what it discovered.
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
