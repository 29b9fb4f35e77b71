// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed template
var templates embed.FS

// A file is one of the module, and the template that it is written from.
type file struct {
	path, template string
	generated      bool // YAML that "setpoint generate" writes anew
}

// files returns the files of a module. Most have the name of their template.
func (n *names) files() []file {
	return []file{
		{path: "go.mod", template: "go.mod"},
		{path: "main.go", template: "main.go"},
		{path: "api/" + n.Version + "/doc.go", template: "api/doc.go"},
		{path: "api/" + n.Version + "/" + n.File + "_types.go", template: "api/types.go"},
		{path: "api/" + n.Version + "/zz_generated.deepcopy.go", template: "api/deepcopy.go"},
		{path: "controllers/" + n.File + ".go", template: "controllers/controller.go"},
		{path: "controllers/" + n.File + "_test.go", template: "controllers/controller_test.go"},
		{path: "controllers/" + n.File + "_cluster_test.go", template: "controllers/cluster_test.go"},
		{path: "config/crd/" + n.Group + "_" + n.Plural + ".yaml", template: "config/crd.yaml", generated: true},
		{path: "config/rbac/role.yaml", template: "config/role.yaml", generated: true},
		{path: "config/manager.yaml", template: "config/manager.yaml"},
		{path: "config/sample.yaml", template: "config/sample.yaml"},
		{path: "Dockerfile", template: "Dockerfile"},
		{path: ".dockerignore", template: "dockerignore"},
		{path: ".gitignore", template: "gitignore"},
		{path: "Makefile", template: "Makefile"},
		{path: "README.md", template: "README.md"},
	}
}

// render returns the content of a file. Go files are formatted.
func (n *names) render(f file) ([]byte, error) {
	text, err := templates.ReadFile("template/" + f.template + ".tmpl")
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(f.template).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, n); err != nil {
		return nil, err
	}
	formatted := content.Bytes()
	switch {
	case f.generated:
		formatted, err = asGenerated(formatted)
	case strings.HasSuffix(f.path, ".go"):
		formatted, err = format.Source(formatted)
	}
	if err != nil {
		return nil, fmt.Errorf("formatting %s: %w", f.path, err)
	}
	return formatted, nil
}

// write writes the module into a folder, which is made if it does not exist. It returns the
// paths of the files. Nothing is written if a file cannot be rendered.
func (n *names) write(dir string) ([]string, error) {
	files := n.files()
	contents := make([][]byte, len(files))
	for i, f := range files {
		var err error
		if contents[i], err = n.render(f); err != nil {
			return nil, err
		}
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { //nolint:gosec // the umask decides, as for every source file
			return nil, err
		}
		if err := os.WriteFile(path, contents[i], 0o666); err != nil { //nolint:gosec // the umask decides
			return nil, err
		}
	}
	return paths, nil
}

// checkEmpty returns an error if a folder has files in it. It need not exist.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file: name another folder with --dir", dir)
		}
		return err
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty: name another one with --dir", dir)
	}
	return nil
}
