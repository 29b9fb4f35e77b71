// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
)

// helpText is what the help of a controller manager says.
type helpText struct {
	flags        map[string]helpFlag
	controllers  []string
	offByDefault []string
	gates        map[string]string // what the help says after the name
}

// The help of both programs has the same flags, with their short forms and defaults. What is
// different has a reason here, and in docs/command-line.md.
var (
	otherDefaults = map[string]struct{ value, why string }{
		"controller-shutdown-timeout": {"12s", "controllers that stop have the time of their longest write"},
		"kube-api-qps":                {"", "the server says what is too much, by priority and fairness"},
		"leader-elect-lease-duration": {"9s", "the lease moves sooner after a crash"},
		"leader-elect-renew-deadline": {"6s", "the lease moves sooner after a crash"},
		"logging-format":              {"", "--log-format decides, which knows one format more"},
	}
	otherTypes = map[string]struct{ kind, why string }{
		"feature-gates":                       {"gates", "there is one component"},
		"horizontal-pod-autoscaler-tolerance": {"float32", "more than 32 bits hold is no tolerance"},
		"v":                                   {"level", "Go's name of the type"},
	}
	otherShorts = map[string]struct{ short, why string }{
		"kubeconfig": {"k", "as of the other commands of setpoint"},
		"v":          {"", "-v is the short form of --verbose, and takes a number as well"},
	}
	onlyOurFlags = map[string]string{
		"config":          "flags in a file",
		"context":         "a context of the kubeconfig",
		"decoded-budget":  "the cache keeps objects compressed",
		"log-format":      "lines for people",
		"plain-port":      "pages without TLS on this machine",
		"run-record-file": "the file of the record that setpoint explain reads",
		"run-record-size": "the record that setpoint explain reads",
		"verbose":         "-v without a number",
	}
	otherGates = map[string]struct{ is, why string }{
		releaseOnExit: {"true|false (ALPHA - default=true)", "a manager that stops leaves no lease to wait for"},
	}
	// ofAnotherController are flags that upstream's help lists with a controller that is not
	// the one that has them here.
	ofAnotherController = map[string]string{
		"concurrent-serviceaccount-token-syncs": "serviceaccount-token-controller fills the Secrets of tokens",
	}
	// ofTheProcess are flags of a controller of upstream's that several controllers read here.
	ofTheProcess = map[string]string{
		"cluster-signing-":                 "files of keys belong to the cluster that a manager is given",
		"root-ca-file":                     "files of keys belong to the cluster that a manager is given",
		"service-account-private-key-file": "files of keys belong to the cluster that a manager is given",
	}
)

// theirHelp is the help of kube-controller-manager.
func theirHelp(t *testing.T) helpText {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary(t, "kube-controller-manager"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	h := helpText{flags: byName(text), gates: map[string]string{}}
	for _, m := range regexp.MustCompile(`(?m)^ +kube:([A-Za-z0-9]+)=(.*)$`).FindAllStringSubmatch(text, -1) {
		h.gates[m[1]] = m[2]
	}
	list := func(begin string) []string {
		_, rest, _ := strings.Cut(text, begin)
		line, _, _ := strings.Cut(rest, "\n")
		line, _, _ = strings.Cut(line, " (default")
		return strings.Split(line, ", ")
	}
	h.controllers, h.offByDefault = list("All controllers: "), list("Disabled-by-default controllers: ")
	if len(h.flags) < 140 || len(h.gates) < 150 || len(h.controllers) < 48 || len(h.offByDefault) < 2 {
		t.Fatalf("%d flags, %d gates, %d and %d controllers, which is too few: does kube-controller-manager write its help in another way?",
			len(h.flags), len(h.gates), len(h.controllers), len(h.offByDefault))
	}
	return h
}

// ourHelp is what "setpoint manager --help" prints.
func ourHelp(t *testing.T) helpText {
	t.Helper()
	var out bytes.Buffer
	w := &cli.World{Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }}
	root := &cobra.Command{Use: "setpoint"}
	root.AddCommand(Command(w, ""))
	if status := w.Run(context.Background(), root, "setpoint", []string{"manager", "--help"}); status != 0 {
		t.Fatalf("status %d: %s", status, out.String())
	}
	text := out.String()
	h := helpText{flags: byName(text), gates: map[string]string{}}
	for _, m := range regexp.MustCompile(`(?m)^ {20,}([A-Z][A-Za-z0-9]+)=((?:true\|false|true|false) .*)$`).FindAllStringSubmatch(text, -1) {
		h.gates[m[1]] = m[2]
	}
	_, list, _ := strings.Cut(text, "The controllers are\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		name, summary, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.controllers = append(h.controllers, name)
		if strings.HasSuffix(summary, "; if it is named") {
			h.offByDefault = append(h.offByDefault, name)
		}
	}
	return h
}

func byName(help string) map[string]helpFlag {
	flags := map[string]helpFlag{}
	for _, f := range flagsOfHelp(help) {
		flags[f.name] = f
	}
	return flags
}

func TestTheHelpHasEveryFlagOfKubeControllerManager(t *testing.T) {
	theirs, ours := theirHelp(t).flags, ourHelp(t).flags
	types := Command(&cli.World{}, "").Flags()
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		their := theirs[name]
		our, there := ours[name]
		if !there {
			t.Errorf("the help does not have --%s", name)
			continue
		}
		want := their.byDefault
		if other, differs := otherDefaults[name]; differs {
			want = other.value
		}
		if our.byDefault != want {
			t.Errorf("--%s is %q by default, want %q", name, our.byDefault, want)
		}
		want = their.short
		if other, differs := otherShorts[name]; differs {
			want = other.short
		}
		if our.short != want {
			t.Errorf("--%s has the short form %q, want %q", name, our.short, want)
		}
		if want = their.kind; otherTypes[name].kind != "" {
			want = otherTypes[name].kind
		}
		if got := typeOf(types, name); name != "help" && got != want {
			t.Errorf("--%s is a %s, want a %s", name, got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if _, there := theirs[name]; !there && onlyOurFlags[name] == "" {
			t.Errorf("kube-controller-manager does not have --%s, and no reason is given", name)
		}
	}
}

// typeOf is the type of a flag as a help shows it that has no other name for its value.
func typeOf(flags *pflag.FlagSet, name string) string {
	flag := flags.Lookup(name)
	if flag == nil {
		return "flag that is not there"
	}
	bare := *flag
	bare.Usage = ""
	if kind, _ := pflag.UnquoteUsage(&bare); kind != "" {
		return kind
	}
	return "bool"
}

// A difference that is none any more has no place in the lists.
func TestTheListedDifferencesOfTheHelpAreThere(t *testing.T) {
	theirs, ours := theirHelp(t), ourHelp(t)
	types := Command(&cli.World{}, "").Flags()
	for name, other := range otherDefaults {
		if theirs.flags[name].byDefault == other.value {
			t.Errorf("--%s has no other default", name)
		}
	}
	for name, other := range otherTypes {
		if theirs.flags[name].kind == typeOf(types, name) || other.why == "" {
			t.Errorf("--%s has no other type, or no reason", name)
		}
	}
	for name := range otherShorts {
		if theirs.flags[name].short == ours.flags[name].short {
			t.Errorf("--%s has no other short form", name)
		}
	}
	for name := range onlyOurFlags {
		if _, there := ours.flags[name]; !there {
			t.Errorf("--%s is not there", name)
		}
	}
	for name, other := range otherGates {
		if theirs.gates[name] == other.is {
			t.Errorf("the gate %s is the same", name)
		}
	}
}

func TestTheDifferencesOfTheHelpAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "A test compares the help of both programs")
	section, _, _ = strings.Cut(section, "\n### ")
	for _, names := range [][]string{
		slices.Collect(maps.Keys(otherDefaults)), slices.Collect(maps.Keys(otherTypes)), slices.Collect(maps.Keys(onlyOurFlags)),
	} {
		for _, name := range names {
			if name != "v" && !strings.Contains(section, "`--"+name+"`") {
				t.Errorf("docs/command-line.md does not say how --%s differs", name)
			}
		}
	}
	for name := range otherGates {
		if !strings.Contains(section, "| `"+name+"` |") {
			t.Errorf("docs/command-line.md does not say how the gate %s differs", name)
		}
	}
	for _, short := range []string{"-v", "-k"} {
		if !strings.Contains(section, "| `"+short+"` |") {
			t.Errorf("docs/command-line.md does not say how %s differs", short)
		}
	}
}

// kube-controller-manager lists the flags of a controller together, and here the descriptor of
// that controller declares them.
func TestEachControllerDeclaresTheFlagsThatItHasUpstream(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), binary(t, "kube-controller-manager"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]string{}
	builtIn := map[string]bool{}
	for _, d := range registry.Known() {
		builtIn[d.Name] = true
		for _, f := range d.Flags {
			declared[f.Name] = d.Name
		}
	}
	checked := 0
	for _, group := range regexp.MustCompile(`(?m)^([A-Z][a-z-]+-controller) flags:\n`).FindAllStringSubmatchIndex(string(out), -1) {
		controller := strings.ToLower(string(out)[group[2]:group[3]])
		section, _, _ := strings.Cut(string(out)[group[1]:]+"\n", "flags:\n")
		for _, f := range flagsOfHelp(section) {
			checked++
			switch {
			case !builtIn[controller] || idleReasons[f.name] != "" || ofAnotherController[f.name] != "":
			case slices.ContainsFunc(slices.Collect(maps.Keys(ofTheProcess)), func(prefix string) bool { return strings.HasPrefix(f.name, prefix) }):
			case declared[f.name] != controller:
				t.Errorf("--%s is a flag of %s, and %q declares it", f.name, controller, declared[f.name])
			}
		}
	}
	if checked < 60 {
		t.Errorf("%d flags of controllers, which is too few", checked)
	}
}

func TestTheHelpHasEveryControllerOfKubeControllerManager(t *testing.T) {
	theirs, ours := theirHelp(t), ourHelp(t)
	missing := registry.Absent(theirs.controllers)
	for _, name := range theirs.controllers {
		switch here, absent := slices.Contains(ours.controllers, name), slices.Contains(missing, name); {
		case here && absent:
			t.Errorf("%s is in the help, and the registry says that it is not built in", name)
		case !here && !absent:
			t.Errorf("%s is neither in the help nor among those that are not built in", name)
		case here && slices.Contains(theirs.offByDefault, name) != slices.Contains(ours.offByDefault, name):
			t.Errorf("%s is off by default: %t", name, slices.Contains(ours.offByDefault, name))
		}
	}
	for _, name := range ours.controllers {
		if !slices.Contains(theirs.controllers, name) {
			t.Errorf("kube-controller-manager has no %s", name)
		}
	}
	t.Logf("not built in: %v", missing)
}

func TestTheHelpHasTheGatesOfKubeControllerManager(t *testing.T) {
	theirs, ours := theirHelp(t).gates, ourHelp(t).gates
	if len(ours) < 10 {
		t.Errorf("%d gates, which are too few", len(ours))
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		their, shown := theirs[name]
		if other, differs := otherGates[name]; differs {
			their = other.is
		}
		// The help shows neither gates that are generally available nor those that are locked.
		if shown && ours[name] != their || !shown && !strings.HasSuffix(ours[name], "locked)") && !strings.Contains(ours[name], "(GA ") {
			t.Errorf("%s: %s, want %q", name, ours[name], their)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if groups[name] != "" {
			continue
		}
		is := gateHelp([]gate{{name, knownSpecs(name)}})
		if other, differs := otherGates[name]; differs {
			theirs[name] = other.is
		}
		// One with two defaults is in the table with that for components of the newest version alone.
		want, _, two := strings.Cut(theirs[name], " if --min-compatibility-version")
		if _, newest, found := strings.Cut(want, ", or "+name+"="); two && found {
			want = newest
			if ours[name] != "" {
				t.Errorf("%s is read here, and its default depends on --min-compatibility-version, which nothing reads", name)
			}
		}
		if is != name+"="+want {
			t.Errorf("the table of gates has %q, want %s=%s; does make gates have to be run?", is, name, want)
		}
	}
}

// A flag without effect says why.
func TestEveryFlagWithoutEffectHasItsReason(t *testing.T) {
	flags := Command(&cli.World{}, "").Flags()
	idle := 0
	flags.VisitAll(func(f *pflag.Flag) {
		reason, without := strings.CutPrefix(f.Usage, noEffect)
		if !without {
			return
		}
		idle++
		if reason == "" && !unlisted[f.Name] {
			t.Errorf("--%s has no effect, and no reason is given", f.Name)
		}
	})
	for name := range idleReasons {
		if f := flags.Lookup(name); f == nil || !strings.HasPrefix(f.Usage, noEffect) {
			t.Errorf("--%s has an effect, or is not there", name)
		}
	}
	if idle < len(idleReasons) {
		t.Errorf("%d flags without effect, want %d at least", idle, len(idleReasons))
	}
}
