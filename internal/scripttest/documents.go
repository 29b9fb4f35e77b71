// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// documented has the blocks of documents that name a running script.
type documented struct {
	blocks []documenttest.Block
	used   map[string]bool
}

type documentedKey struct{}

// Documents gives a script the blocks of documents that name it, as "TEST/NAME OF THE SCRIPT". The Setup of a
// script calls it, with the name of the test that runs the scripts. The script fails if it
// ends without having used each of its blocks.
func Documents(e *testscript.Env, test string) error {
	blocks, err := documenttest.Named(test + "/" + strings.TrimPrefix(filepath.Base(e.WorkDir), "script-"))
	if err != nil {
		return err
	}
	s := &documented{blocks: blocks, used: map[string]bool{}}
	e.Values[documentedKey{}] = s
	e.Defer(func() {
		if t, ok := e.T().(interface{ Failed() bool }); ok && t.Failed() {
			return
		}
		for _, b := range blocks {
			if !s.used[b.String()] {
				e.T().Fatal(b.String(), "names this script, which does not use the block", b.Name)
			}
		}
	})
	return nil
}

// DocumentCommands are the commands of a script that use the blocks of documents. A block is called by the heading
// above it, as in links; a number behind it counts the blocks of a heading, from the second one:
//
//	block NAME [OLD=>NEW...]          runs a block in a shell. Each output that the block shows is compared
//	lines NAME TEXT [OLD=>NEW...]     runs each command of a list until it prints TEXT, and ends it by SIGTERM.
//	                                 A word "+WORD" is added to each command
//	parsed NAME [OLD=>NEW...]         has each command of a list read its flags, by --help
//	written NAME FILE [OLD=>NEW...]   writes a block to a file
//	shown NAME FILE [OLD=>NEW...]     compares the outputs of a block with lines of a file, in their order
//
// OLD is replaced by NEW before. What is printed may be in a namespace of the script, $NS, where the
// document shows the namespace default.
func DocumentCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"block": runBlock, "lines": runLines, "parsed": parseLines, "written": writeFile, "shown": compareFile,
	}
}

// find returns a block, with replacements, and the words that are to be added.
func find(ts *testscript.TestScript, neg bool, args []string) (b documenttest.Block, added []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("want the name of a block, without !")
	}
	s, _ := ts.Value(documentedKey{}).(*documented)
	i := slices.IndexFunc(s.blocks, func(b documenttest.Block) bool { return b.Name == args[0] })
	if i < 0 {
		ts.Fatalf("no block called %q names this script", args[0])
	}
	b = s.blocks[i]
	s.used[b.String()] = true
	for _, arg := range args[1:] {
		if word, ok := strings.CutPrefix(arg, "+"); ok {
			added = append(added, word)
			continue
		}
		from, to, ok := strings.Cut(arg, "=>")
		if !ok || !strings.Contains(b.Text, from) {
			ts.Fatalf("%s: want OLD=>NEW with a text of the block, have %q", b, arg)
		}
		b.Text = strings.ReplaceAll(b.Text, from, to)
	}
	ts.Logf("[%s]", b)
	return b, added
}

// again is what a reader may do again until it shows what it should: a reader is slower than
// a program.
var again = regexp.MustCompile(`^(kubectl (get|logs|events|describe|top)|cat|ls|curl) `)

// readAgainPause is the time between two tries of a reader.
const readAgainPause = 300 * time.Millisecond

func runBlock(ts *testscript.TestScript, neg bool, args []string) {
	b, _ := find(ts, neg, args)
	steps := b.Steps()
	if len(steps) == 0 {
		shell := "sh"
		if b.Language == "bash" {
			shell = "bash"
		}
		ts.Check(ts.Exec(shell, "-e", "-c", b.Text))
		return
	}
	for _, step := range steps {
		var last string
		same := func() bool {
			last = run(ts, step.Command)
			return documenttest.Same(step.Output, last)
		}
		if !same() && (!again.MatchString(step.Command) || !Within(patience, readAgainPause, same)) {
			ts.Fatalf("%s: %s prints\n%s\nthe document shows\n%s", b, step.Command, last, step.Output)
		}
	}
}

// run returns what a command prints, with the namespace of documents. Its status is what it is:
// a document may show an error.
func run(ts *testscript.TestScript, command string) string {
	if err := ts.Exec("sh", "-c", "{ "+command+"\n} 2>&1"); err != nil {
		ts.Logf("[%v]", err)
	}
	printed := ts.ReadFile("stdout")
	if namespace := ts.Getenv("NS"); namespace != "" {
		printed = strings.ReplaceAll(printed, namespace, "default")
	}
	return printed
}

// untilItPrints runs a command until its output has a text, and ends it; one with "--once" ends by
// itself, with the status 1 if something has changed. A command that ends before it prints the text must have
// succeeded.
const untilItPrints = `
$COMMAND >printed 2>&1 & pid=$!
eventually "grep -q -e '$TEXT' printed || ! kill -0 $pid 2>/dev/null" || { cat printed; kill -KILL $pid; exit 1; }
test "$ONCE" || kill -TERM $pid 2>/dev/null || true
status=0
wait $pid || status=$?
case "$status$ONCE" in
0|0--once|1--once) ;;
*) echo "status $status"; cat printed; exit 1;;
esac
`

func runLines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: lines NAME TEXT [OLD=>NEW...] [+WORD...]")
	}
	b, added := find(ts, neg, append([]string{args[0]}, args[2:]...))
	for _, command := range b.Commands() {
		once := ""
		if strings.Contains(command, " --once") {
			once = "--once"
		}
		shell := strings.NewReplacer("$COMMAND", strings.Join(append([]string{command}, added...), " "), "$TEXT", args[1], "$ONCE", once).Replace(untilItPrints)
		if err := ts.Exec("sh", "-c", shell); err != nil {
			ts.Fatalf("%s: %s: %v", b, command, err)
		}
	}
}

func parseLines(ts *testscript.TestScript, neg bool, args []string) {
	b, _ := find(ts, neg, args)
	for _, command := range b.Commands() {
		ours, _, _ := strings.Cut(command, " -- ")
		if err := ts.Exec("sh", "-c", ours+" --help"); err != nil {
			ts.Fatalf("%s: %s: %v", b, command, err)
		}
	}
}

func writeFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: written NAME FILE [OLD=>NEW...]")
	}
	b, _ := find(ts, neg, append([]string{args[0]}, args[2:]...))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.Text), 0o600))
}

func compareFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: shown NAME FILE [OLD=>NEW...]")
	}
	b, _ := find(ts, neg, append([]string{args[0]}, args[2:]...))
	printed := ts.ReadFile(args[1])
	if missing := documenttest.Missing(b.Text, printed); missing != "" {
		ts.Fatalf("%s: nothing prints %q, or not there; %s has\n%s", b, missing, args[1], printed)
	}
}
