// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// described is a command as its program describes it.
// Source: internal/cli, Description, of the root module.
type described struct {
	Name     string `json:"name"` // with the names of the commands above it
	Usage    string `json:"usage"`
	Short    string `json:"short"`
	Long     string `json:"long"`
	Example  string `json:"example"`
	Flags    []flagDescribed
	Commands []described
}

type flagDescribed struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand"`
	Value     string `json:"value"` // what the usage calls it; empty for a switch
	Default   string `json:"default"`
	Usage     string `json:"usage"`
}

// handedOver are the programs that commands of setpoint become. Each describes its command better
// than setpoint does, which does not know its flags.
var handedOver = []string{"setpoint-watch", generator}

// manual is the man pages of the commands in a folder, by the name of the file.
func (r *release) manual(ctx context.Context, bin string) (map[string][]byte, error) {
	root, err := describe(ctx, filepath.Join(bin, "setpoint"))
	if err != nil {
		return nil, err
	}
	for _, program := range handedOver {
		own, err := describe(ctx, filepath.Join(bin, program))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(root.Commands, func(c described) bool { return c.Name == own.Name })
		if i < 0 {
			return nil, fmt.Errorf("%s describes the command %q, which setpoint does not have", program, own.Name)
		}
		root.Commands[i] = own
	}
	pages := map[string][]byte{}
	r.addPages(pages, root, nil)
	return pages, nil
}

// describe returns a program's description of its commands.
func describe(ctx context.Context, program string) (described, error) {
	var d described
	text, err := output(ctx, program, "__describe")
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("reading the description of %s: %w", program, err)
	}
	return d, nil
}

// output runs a program and returns what it writes to standard output.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// fileOf is the file with the page of a command.
func (d described) fileOf() string { return d.page() + ".1" }

// page is the name of the page: the words of the command, joined by dashes.
func (d described) page() string { return strings.ReplaceAll(d.Name, " ", "-") }

// addPages adds the page of a command and those of the commands below it.
func (r *release) addPages(pages map[string][]byte, d described, above *described) {
	pages[d.fileOf()] = r.page(d, above)
	for _, c := range d.Commands {
		r.addPages(pages, c, &d)
	}
}

// page writes the man page of a command in the language of man(7).
func (r *release) page(d described, above *described) []byte {
	var p roff
	p.line(".TH", quote(strings.ToUpper(d.page())), "1", quote(r.created.Format("2006-01-02")), quote("setpoint "+r.version), quote("Setpoint"))
	p.line(".SH NAME")
	p.text(d.page() + " - " + d.Short)
	p.line(".SH SYNOPSIS")
	p.line(".nf")
	p.text(d.Usage)
	p.line(".fi")
	p.line(".SH DESCRIPTION")
	p.paragraphs(d.Long)
	if len(d.Flags) > 0 {
		p.line(".SH OPTIONS")
	}
	for _, f := range d.Flags {
		p.line(".TP")
		p.line(f.heading())
		p.text(f.explained())
	}
	if d.Example != "" {
		p.line(".SH EXAMPLES")
		p.verbatim(d.Example)
	}
	var others []string
	if above != nil {
		others = append(others, bold(above.page())+"(1)")
	}
	for _, c := range d.Commands {
		others = append(others, bold(c.page())+"(1)")
	}
	if len(others) > 0 {
		p.line(".SH SEE ALSO")
		p.line(strings.Join(others, ", "))
	}
	return p.Bytes()
}

// heading is the line with the name of a flag.
func (f flagDescribed) heading() string {
	text := bold("--" + f.Name)
	if f.Shorthand != "" {
		text = bold("-"+f.Shorthand) + ", " + text
	}
	if f.Value != "" {
		text += " " + italic(f.Value)
	}
	return text
}

// explained is the usage of a flag, with its default.
func (f flagDescribed) explained() string {
	if f.Default == "" {
		return f.Usage
	}
	return f.Usage + " (default " + f.Default + ")"
}
