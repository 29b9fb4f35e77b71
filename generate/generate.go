// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/rbac"
)

// Options are what [Run] reads, and where its files belong.
type Options struct {
	// Dir is the folder of the Go module. Empty is the current one.
	Dir string
	// Patterns are the packages to read, as the go command has them. None is "./...".
	Patterns []string
	// CRDs is the folder for CustomResourceDefinitions, and Roles that for rights. A path
	// that is not absolute begins at Dir. Empty is config/crd and config/rbac.
	CRDs, Roles string
	// RoleName is the name of the ClusterRole and of the Roles. Empty is the name in the file
	// role.yaml in Roles, or else the name of the folder Dir.
	RoleName string
}

// Run returns the files that follow from the packages and their markers, sorted by path. It
// writes nothing: see [Write]. If there are mistakes in packages or markers, it returns no
// files, and an error that is a [SourceErrors].
func Run(ctx context.Context, o Options) ([]File, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	// The definitions do not change with the version of the library that wrote them.
	withoutVersion := true
	var (
		definitions genall.Generator = crd.Generator{OmitToolVersion: &withoutVersion}
		copies      genall.Generator = deepcopy.Generator{}
		rights      genall.Generator = rbac.Generator{RoleName: o.RoleName}
	)
	generators := genall.Generators{&definitions, &copies, &rights}
	positions := token.NewFileSet()
	read, err := generators.ForRootsWithConfig(&packages.Config{Context: ctx, Dir: o.Dir, Fset: positions}, o.Patterns...)
	if err != nil {
		return nil, fmt.Errorf("reading packages: %w", err)
	}
	// What follows from half a package is wrong.
	if found := append(mistakesIn(read.Roots), unknownMarkers(read.Roots, read.Collector.Registry, positions)...); len(found) > 0 {
		return nil, found.in(o.Dir)
	}
	outputs := []output{{dir: o.CRDs}, {}, {dir: o.Roles}}
	for i, generator := range generators {
		run := read.GenerationContext
		run.OutputRule = &outputs[i]
		if err := (*generator).Generate(&run); err != nil {
			return nil, fmt.Errorf("generating: %w", err)
		}
	}
	if found := mistakesIn(read.Roots); len(found) > 0 {
		return nil, found.in(o.Dir)
	}
	var files []File
	for _, output := range outputs {
		some, err := output.files()
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// complete replaces what is empty by its default.
func (o *Options) complete() error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if len(o.Patterns) == 0 {
		o.Patterns = []string{"./..."}
	}
	o.CRDs, o.Roles = below(dir, o.CRDs, "config/crd"), below(dir, o.Roles, "config/rbac")
	if o.RoleName == "" {
		o.RoleName, err = roleName(filepath.Join(o.Roles, roleFile), filepath.Base(dir))
	}
	return err
}

// below returns a path below a folder, unless it is absolute.
func below(dir, path, otherwise string) string {
	switch {
	case path == "":
		return filepath.Join(dir, filepath.FromSlash(otherwise))
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(dir, path)
}
