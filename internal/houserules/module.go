// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// heavy are modules that only the control-plane module may depend on.
var heavy = []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "k8s.io/apiserver"}

// Installable holds that the commands of the module in dir can be installed by path and version,
// which the go command refuses for a module with replace or exclude directives.
func Installable(ctx context.Context, dir string) ([]string, error) {
	text, err := run(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Replace []struct{ Old struct{ Path string } }
		Exclude []struct{ Path string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading go.mod in %s: %w", dir, err)
	}
	var found []string
	for _, replace := range file.Replace {
		found = append(found, fmt.Sprintf("go.mod: replaces %s, and so go install refuses the module; move what needs it into a module of its own", replace.Old.Path))
	}
	for _, exclude := range file.Exclude {
		found = append(found, fmt.Sprintf("go.mod: excludes %s, and so go install refuses the module", exclude.Path))
	}
	return found, nil
}

// Module holds that the module in dir is [Installable], and that its users do not inherit the
// graph of a whole Kubernetes.
func Module(ctx context.Context, dir string) ([]string, error) {
	found, err := Installable(ctx, dir)
	if err != nil {
		return nil, err
	}
	modules, err := run(ctx, dir, "list", "-m", "all")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(modules)) {
		if path, _, _ := strings.Cut(strings.TrimSpace(line), " "); slices.Contains(heavy, path) {
			found = append(found, fmt.Sprintf("go.mod: needs %s, which only the control-plane module may", path))
		}
	}
	slices.Sort(found)
	return found, nil
}
