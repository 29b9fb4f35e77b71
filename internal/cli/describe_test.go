// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"testing"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

func TestTheHiddenCommandDescribesWhatTheHelpShows(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "A tool", CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.SetHelpCommand(&cobra.Command{Use: "none", Hidden: true})
	sub := &cobra.Command{Use: "run [FILE]", Short: "Run it", Long: "Run it now.", Example: "  tool run", Run: func(*cobra.Command, []string) {}}
	sub.Flags().StringP("to", "t", "here", "write to this `file`")
	sub.Flags().Bool("dry", false, "write nothing")
	sub.Flags().Int("secret", 1, "a flag that the help does not show")
	if err := sub.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	root.AddCommand(sub)
	var out bytes.Buffer
	w := &cli.World{Stdout: &out, Stderr: io.Discard}
	if status := w.Run(t.Context(), root, "tool", []string{"__describe"}); status != 0 {
		t.Fatalf("it ended with %d", status)
	}
	var got cli.Description
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	help := func(of string) cli.FlagDescription {
		return cli.FlagDescription{Name: "help", Shorthand: "h", Usage: "help for " + of}
	}
	want := cli.Description{
		Name: "tool", Usage: "tool", Short: "A tool", Long: "A tool", Flags: []cli.FlagDescription{help("tool")},
		Commands: []cli.Description{{
			Name: "tool run", Usage: "tool run [FILE] [flags]", Short: "Run it", Long: "Run it now.", Example: "  tool run",
			Flags: []cli.FlagDescription{
				{Name: "dry", Usage: "write nothing"}, help("run"),
				{Name: "to", Shorthand: "t", Value: "file", Default: "here", Usage: "write to this file"},
			},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
