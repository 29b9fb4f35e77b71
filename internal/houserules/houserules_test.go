// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
	"github.com/setpoint-io/setpoint/internal/houserules"
)

// root is the folder of the repository and of its root module.
const root = "../.."

// keep fails the test with what breaks a rule.
func keep(t *testing.T, found []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range found {
		t.Error(line)
	}
}

// The rules read the same packages and files, which are listed once.
var (
	listPackages = sync.OnceValues(func() (*houserules.Tree, error) { return houserules.Load(context.Background(), root) })
	listFiles    = sync.OnceValues(func() ([]string, error) { return houserules.Files(context.Background(), root) })
)

func load(t *testing.T) *houserules.Tree {
	t.Helper()
	tree, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func files(t *testing.T) []string {
	t.Helper()
	files, err := listFiles()
	if errors.Is(err, houserules.ErrNotACheckout) {
		t.Skip("the files of a commit are known only to git: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestImportsGoDownwards(t *testing.T) {
	rows, err := houserules.Table(root)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, houserules.Layers(load(t), rows), nil)
}

func TestTestPackagesAreNotShipped(t *testing.T) {
	keep(t, houserules.TestOnly(load(t)), nil)
}

func TestExamplesImportNothingInternal(t *testing.T) {
	keep(t, houserules.Examples(load(t)), nil)
}

func TestNothingIsBuiltFromWhatItReplaces(t *testing.T) {
	keep(t, houserules.Peers(load(t)), nil)
}

func TestOnlyClientAndManagerOpenConnections(t *testing.T) {
	found, err := houserules.Connections(load(t))
	keep(t, found, err)
}

func TestOnlyCommandsTouchTheProcess(t *testing.T) {
	found, err := houserules.Process(load(t))
	keep(t, found, err)
}

func TestRootModuleIsLightAndInstallable(t *testing.T) {
	found, err := houserules.Module(t.Context(), root)
	keep(t, found, err)
}

// Only users of the library inherit a graph, and no module requires the generator.
func TestTheGeneratorIsInstallable(t *testing.T) {
	found, err := houserules.Installable(t.Context(), filepath.Join(root, "generate"))
	keep(t, found, err)
}

func TestRowsBelongToTables(t *testing.T) {
	found, err := houserules.Tables(root, files(t))
	keep(t, found, err)
}

func TestDependenciesHaveReasons(t *testing.T) {
	modules, err := filepath.Glob(filepath.Join(root, "*", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"."}
	for _, file := range modules {
		if folder := filepath.Base(filepath.Dir(file)); folder != "tools" { // what it pins are the tools themselves
			folders = append(folders, folder)
		}
	}
	found, err := houserules.Dependencies(t.Context(), root, folders...)
	keep(t, found, err)
}

func TestPackagesAreDocumented(t *testing.T) {
	found, err := houserules.Documentation(root, files(t))
	keep(t, found, err)
}

func TestSourceFilesHaveLicenceHeaders(t *testing.T) {
	found, err := houserules.Headers(root, files(t))
	keep(t, found, err)
}

// The document shows the header that a source file needs.
func TestTheHeaderInTheDocumentIsTaken(t *testing.T) {
	for _, b := range documenttest.Blocks(t) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(b.Text+"\npackage a\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := houserules.Headers(dir, []string{"a.go"})
		keep(t, found, err)
	}
}

func TestFilesSpeakOfTheProjectAlone(t *testing.T) {
	found, err := houserules.Texts(root, files(t))
	keep(t, found, err)
}

func TestSubjectsHaveNames(t *testing.T) {
	found, err := houserules.Words(root, files(t))
	keep(t, found, err)
}

func TestNoProgramIsCommitted(t *testing.T) {
	found, err := houserules.Binaries(root, files(t))
	keep(t, found, err)
}

func TestGoCommandsWorkInTheFolderOfEachModule(t *testing.T) {
	found, err := houserules.Workspaces(t.Context(), root, files(t))
	keep(t, found, err)
}

func TestDocumentsAreTested(t *testing.T) {
	found, err := documenttest.Check(root)
	keep(t, found, err)
}
