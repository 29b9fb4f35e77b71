// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nearest"
)

// The minor versions of Kubernetes that can be emulated: this one's, and those before it
// that upstream emulates too.
// Source: k8s.io/component-base/compatibility.
const (
	newestMinor = 37
	oldestMinor = newestMinor - 3
)

// gate is a feature gate as the table of known ones has it.
type gate struct {
	name  string
	specs []gateSpec // by version, the oldest first
}

// gateSpec is what a gate is since a version.
type gateSpec struct {
	since  int // the minor version
	on     bool
	stage  string // as upstream's constants are called
	locked bool   // to on
}

// releaseOnExit is the gate that the process itself obeys. It is on by default, unlike
// upstream's: the lease is released at the end, so that no process waits for one that is gone.
const releaseOnExit = "ControllerManagerReleaseLeaderElectionLockOnExit"

// settled are gates of what is done here in any case. What they are set to is checked.
// StaleControllerConsistencyReplicaSet says whether a ReplicaSet waits for its own writes to be
// seen, or counts what it expects to see; from outside both are the same.
// Source: the uses of utilfeature.DefaultFeatureGate in k8s.io/kubernetes/pkg/controller and
// cmd/kube-controller-manager/app.
func settled() []string {
	return []string{"OrderedNamespaceDeletion", "SeparateTaintEvictionController", "StaleControllerConsistencyReplicaSet"}
}

// gatesRead returns the gates that something here reads, in the order of their names.
func gatesRead(by []*controllers.Descriptor) []gate {
	names := append(settled(), releaseOnExit)
	for _, d := range by {
		for _, g := range d.Gates {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	var all []gate
	for _, name := range slices.Compact(names) {
		all = append(all, gate{name, knownSpecs(name)})
	}
	return all
}

// knownSpecs reads the row of a gate in the table. There are none for a gate that is not there.
func knownSpecs(name string) (specs []gateSpec) {
	_, row, _ := strings.Cut(knownGates, "\n"+name+" ")
	row, _, _ = strings.Cut(row, "\n")
	for text := range strings.FieldsSeq(row) {
		if fields := strings.Split(text, ":"); len(fields) > 2 {
			since, err := strconv.Atoi(fields[0])
			if err != nil {
				return nil // the table is generated
			}
			specs = append(specs, gateSpec{since, fields[1] == "true", fields[2], len(fields) > 3})
		}
	}
	return specs
}

// at returns what the gate is in a version, false if there was none yet.
func (g gate) at(minor int) (gateSpec, bool) {
	var now gateSpec
	there := false
	for _, s := range g.specs {
		if s.since <= minor {
			now, there = s, true
		}
	}
	return now, there
}

// gateHelp lists gates with their stage and default, one a line, in the form of
// kube-controller-manager's help. Those that cannot be set to another value are locked.
func gateHelp(gates []gate) string {
	var lines []string
	for _, g := range gates {
		spec, there := g.at(newestMinor)
		if !there {
			continue
		}
		on := spec.on || g.name == releaseOnExit
		if spec.locked {
			lines = append(lines, fmt.Sprintf("%s=%t (%s - locked)", g.name, on, strings.ToUpper(spec.stage)))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s=true|false (%s - default=%t)", g.name, strings.ToUpper(spec.stage), on))
	}
	return strings.Join(lines, "\n")
}

// groups are gates that stand for all of a stage that are not set themselves.
// Source: k8s.io/component-base/featuregate.
var groups = map[string]string{"AllAlpha": "Alpha", "AllBeta": "Beta"}

// FeatureGates are gates that a command line sets, each on or off. As a flag it may be given more
// than once.
type FeatureGates map[string]bool

// Type implements pflag.Value.
func (*FeatureGates) Type() string { return "gates" }

// String implements pflag.Value.
func (g *FeatureGates) String() string {
	var pairs []string
	for name, on := range *g {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// Set implements pflag.Value. It may be called more than once. Each gate may have "kube:"
// before it, as upstream's may, and there may be nothing between two commas.
func (g *FeatureGates) Set(text string) error {
	if *g == nil {
		*g = FeatureGates{}
	}
	return cli.EachGate(text, func(name string, on bool) error {
		name = strings.TrimPrefix(name, "kube:")
		if name == "" {
			return fmt.Errorf("%q: want NAME=true or NAME=false", text)
		}
		if err := known(name); err != nil {
			return err
		}
		(*g)[name] = on
		return nil
	})
}

// known holds that some component of Kubernetes has a gate of a name.
func known(name string) error {
	names := slices.Sorted(maps.Keys(groups))
	for line := range strings.Lines(knownGates) {
		if gate, _, ok := strings.Cut(line, " "); ok {
			names = append(names, gate)
		}
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("no component of Kubernetes 1.%d to 1.%d has a feature gate %q%s",
		oldestMinor, newestMinor, name, nearest.Question("%s", name, names))
}

// Obey sets the gates that controllers read: those of the command line, and the others to what
// they are in this version of Kubernetes. The error is that of a gate that cannot have its wanted
// value.
func (g FeatureGates) Obey(by []*controllers.Descriptor) error {
	_, err := g.obey(by, nil)
	return err
}

// obey is Obey for an emulated version, and returns which gates are on.
func (g FeatureGates) obey(by []*controllers.Descriptor, emulated []string) (map[string]bool, error) {
	on, err := g.resolve(gatesRead(by), emulated)
	if err != nil {
		return nil, err
	}
	for _, d := range by {
		for _, gate := range d.Gates {
			gate.Set(on[gate.Name])
		}
	}
	return on, nil
}

// idle returns the names of the gates that were set and that are not read, sorted. What
// they are set to does not matter: installers hand one list of gates to every component, and
// what is locked for one is not there for another.
func (g FeatureGates) idle(read []gate) []string {
	var names []string
	for name := range g {
		_, group := groups[name]
		if !group && !slices.ContainsFunc(read, func(r gate) bool { return r.name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// resolve returns which of the gates that are read are on in the version that is emulated.
// Those that are not there yet are off. The error is that of the first gate that cannot have
// its wanted value.
func (g FeatureGates) resolve(read []gate, emulated []string) (map[string]bool, error) {
	minor, err := emulatedMinor(emulated)
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, each := range read {
		spec, there := each.at(minor)
		on[each.name] = spec.on || each.name == releaseOnExit
		by, asked, set := g.asked(each.name, spec.stage)
		switch {
		case !set, by != each.name && !there:
		case !there:
			return nil, fmt.Errorf("--feature-gates=%s=%t: there is none in 1.%d, which --emulated-version names; leave it out", by, asked, minor)
		case by != each.name && spec.locked:
		case spec.locked && asked != spec.on:
			return nil, fmt.Errorf("--feature-gates=%s=%t: it is locked to %t in 1.%d; leave it out", by, asked, spec.on, minor)
		default:
			on[each.name] = asked
		}
	}
	return on, nil
}

// asked returns what a gate was set to, and by which name: its own, or that of its stage.
func (g FeatureGates) asked(name, stage string) (by string, on, set bool) {
	if on, set = g[name]; set {
		return name, on, true
	}
	for group, of := range groups {
		if on, set = g[group]; set && of == stage {
			return group, on, true
		}
	}
	return "", false, false
}

// emulatedMinor reads the version that is emulated.
func emulatedMinor(emulated []string) (int, error) {
	minor, given, err := oneVersion("emulated-version", emulated)
	if err != nil || !given {
		return newestMinor, err
	}
	return minor, nil
}

// compatible checks the version of other components that this process must be compatible
// with. Nothing here depends on it.
func compatible(with, emulated []string) error {
	least, given, err := oneVersion("min-compatibility-version", with)
	if err != nil || !given {
		return err
	}
	if minor, err := emulatedMinor(emulated); err == nil && least > minor {
		return fmt.Errorf("--min-compatibility-version=1.%d: want 1.%d, which --emulated-version names, or less", least, minor)
	}
	return nil
}

// oneVersion reads a version as upstream does: "1.35", "v1.35.0" or "kube=1.35".
// Source: k8s.io/component-base/compatibility.
func oneVersion(flag string, texts []string) (minor int, given bool, err error) {
	switch len(texts) {
	case 0:
		return 0, false, nil
	case 1:
	default:
		return 0, false, fmt.Errorf("--%s=%s: want one version", flag, strings.Join(texts, ","))
	}
	text := strings.TrimPrefix(strings.TrimPrefix(texts[0], "kube="), "v")
	major, rest, _ := strings.Cut(strings.TrimSuffix(text, ".0"), ".")
	minor, err = strconv.Atoi(rest)
	if major != "1" || err != nil || minor < oldestMinor || minor > newestMinor {
		return 0, false, fmt.Errorf("--%s=%s: want 1.%d to 1.%d", flag, texts[0], oldestMinor, newestMinor)
	}
	return minor, true, nil
}
