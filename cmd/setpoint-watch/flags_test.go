// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// testWorld is a world in which nothing is set, and what was said in it.
func testWorld(env map[string]string) (*cli.World, *bytes.Buffer) {
	var said bytes.Buffer
	return &cli.World{
		Stdout: &said, Stderr: &said, Getenv: func(name string) string { return env[name] },
		Signals: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}, &said
}

// refused runs a command line that comes no further than the kubeconfig, and returns status
// and text.
func refused(t *testing.T, args ...string) (int, string) {
	t.Helper()
	w, said := testWorld(nil)
	status := run(t.Context(), w, append(args, "--kubeconfig", filepath.Join(t.TempDir(), "none")))
	return status, strings.TrimSuffix(said.String(), "\n")
}

func TestAFlagThatIsWrongIsNamedBeforeAnythingIsConnected(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown flag", []string{"--namspace", "a"}, "there is no flag --namspace; did you mean --namespace?"},
		{"an underscore", []string{"--exclude_namespace", "A"}, "--exclude-namespace=A: want the name of a namespace"},
		{"a flag of kubectl", []string{"--output-watch-events"}, "--output-watch-events is what this command does; leave it out"},
		{"a short flag of kubectl", []string{"-w"}, "-w is what this command does; leave it out"},
		{"a duration without unit", []string{"--window", "2"}, "--window=2: want a time with its unit, such as 50s, 5m or 1h30m"},
		{"a duration below zero", []string{"--settle", "-1s"}, "--settle=-1s: want 0 or more"},
		{"a kind that cannot be one", []string{"Pods!"}, `"Pods!" cannot be a kind; want one such as pods, deployments.apps`},
		{"a kind twice", []string{"pods", "svc/web"}, `"svc/web": pods is a kind already; want names alone, as in pods web, or a kind with each, as in pods/NAME svc/web`},
		{"a name alone after an object", []string{"pods/web", "db"}, `"db": want a kind and a name, as in deploy/db: the argument before it is one`},
		{"an object without a name", []string{"pods/"}, `"" cannot be the name of an object; leave it out for all objects of the kind`},
		{"a name that cannot be one", []string{"pods", "a%b"}, `"a%b" cannot be the name of an object: it may not contain '%'`},
		{"all kinds, and an object", []string{"pods", "web", "--all"}, "--all is every kind, and pods/web is asked for as well; leave one of them out"},
		{"a comma too many", []string{"pods,"}, `"pods,": a kind is missing before or after a comma or a slash`},
		{"all kinds, and some", []string{"pods", "--all"}, "--all is every kind, and pods is asked for as well; leave one of them out"},
		{"all namespaces, and some", []string{"-A", "-n", "a"}, "--all-namespaces and --namespace=a: want one of them"},
		{"a namespace both ways", []string{"-n", "a", "--exclude-namespace", "a"}, "--exclude-namespace=a: --namespace=a asks for it"},
		{"a namespace that cannot be one", []string{"-n", "team_a"}, "--namespace=team_a: want the name of a namespace"},
		{"a sort of change", []string{"--show", "heartbets"}, "--show=heartbets: there is no such sort of change; did you mean heartbeats? There are content, metadata, status, trouble, heartbeats, versions"},
		{"a sort of change by the name that it had", []string{"--show", "heartbeat"}, "--show=heartbeat: there is no such sort of change; did you mean heartbeats? There are content, metadata, status, trouble, heartbeats, versions"},
		{"a form", []string{"-o", "jsn"}, "--output=jsn: want text, diff, json, yaml; did you mean json?"},
		{"a form that is no CloudEvent", []string{"-o", "yaml", "--cloudevents"}, "--cloudevents: CloudEvents are JSON; leave out --output=yaml"},
		{"objects in a line", []string{"--with-objects"}, "--with-objects: want --output=json, --output=yaml or --cloudevents"},
		{"a colour", []string{"--color", "yes"}, "--color=yes: want auto, always or never"},
		{"labels", []string{"-l", "tier in web"}, "--selector=tier in web: "},
		{"fields", []string{"--field-selector", "web"}, "--field-selector=web: "},
		{"a rule", []string{"--hide", "data.password"}, "--hide=data.password: "},
		{"a condition", []string{"--where", "event.verbs == 'x'"}, "--where: "},
		{"a regular expression", []string{"--where", "event.name.matches('(')"}, "--where: "},
		{"the beginning both ways", []string{"--initial", "--since-start"}, "--initial and --since-start say the opposite of each other"},
		{"a log format", []string{"--log-format", "xml"}, "--log-format=xml: want auto, people, text or json"},
		{"a cursor without a name", []string{"--cursor", ""}, "--cursor: want the name of a file"},
		{"a cursor in no folder", []string{"--cursor", "/does/not/exist/seen"}, "--cursor=/does/not/exist/seen: its folder cannot be used"},
		{"a file that is not there", []string{"-f", "/does/not/exist.yaml"}, "-f: open /does/not/exist.yaml"},
		{"a lease that is too short", []string{"--leader-elect", "--leader-elect-lease-duration", "1s"}, "--leader-elect-renew-deadline=10s: want less"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, said := refused(t, test.args...)
			if status != 1 || !strings.HasPrefix(said, "setpoint watch: ") || !strings.Contains(said, test.want) {
				t.Errorf("status %d:\n%s\nwant\n%s", status, said, test.want)
			}
		})
	}
}

func TestAConditionThatIsWrongIsShownWithACaret(t *testing.T) {
	_, said := refused(t, "--where", "event.verbs == 'updated'")
	if !strings.Contains(said, "event.verbs == 'updated'\n") || !strings.Contains(said, "^") {
		t.Error(said)
	}
}

func TestOnceSaysThatItNeedsACursorAndThatItFailed(t *testing.T) {
	status, said := refused(t, "--once")
	if status != onceFailed || !strings.Contains(said, "--once tells what has changed since the last run, and needs --cursor FILE") {
		t.Errorf("status %d: %s", status, said)
	}
	for _, args := range [][]string{
		{"--once", "--cursor", filepath.Join(t.TempDir(), "seen")}, // the kubeconfig is not there
		{"--once", "--no-such-flag"},
		{"--no-such-flag", "--once"},
	} {
		if status, said := refused(t, args...); status != onceFailed {
			t.Errorf("%q: status %d: %s", args, status, said)
		}
	}
}

// planned is what is done for a command line.
func planned(t *testing.T, file string, args ...string) (*runCommand, watch.PipelineOptions, error) {
	t.Helper()
	w, _ := testWorld(nil)
	r := &runCommand{w: w}
	c := rootCommand(r)
	if file != "" {
		path := filepath.Join(t.TempDir(), "watch.yaml")
		if err := os.WriteFile(path, []byte("apiVersion: "+config.Version+"\n"+file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", path)
	}
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	o, err := r.plan(c, c.Flags().Args())
	return r, o, err
}

func TestFlagsReachTheOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		get  func(watch.Options) any
		want any
	}{
		{"nothing", nil, func(o watch.Options) any { return o.Kinds }, []string(nil)},
		{"kinds", []string{"Pods,deployments.apps"}, func(o watch.Options) any { return o.Kinds }, []string{"Pods", "deployments.apps"}},
		{"an object", []string{"deploy", "web"}, func(o watch.Options) any { return o.Kinds }, []string{"deploy/web"}},
		{"objects of two kinds", []string{"deploy,svc", "web", "system:db"}, func(o watch.Options) any { return o.Kinds }, []string{"deploy/web", "deploy/system:db", "svc/web", "svc/system:db"}},
		{"objects with their kinds", []string{"deploy/web,svc/web", "cm/colours"}, func(o watch.Options) any { return o.Kinds }, []string{"deploy/web", "svc/web", "cm/colours"}},
		{"all", []string{"--all"}, func(o watch.Options) any { return o.All }, true},
		{"namespaces", []string{"-n", "a", "-n", "b,c"}, func(o watch.Options) any { return o.Namespaces }, []string{"a", "b", "c"}},
		{"namespaces left out", []string{"--exclude-namespace", "kube-system"}, func(o watch.Options) any { return o.ExcludeNamespaces }, []string{"kube-system"}},
		{"labels", []string{"-l", "tier=web"}, func(o watch.Options) any { return o.Labels }, "tier=web"},
		{"fields", []string{"--field-selector", "metadata.name=web"}, func(o watch.Options) any { return o.Fields }, "metadata.name=web"},
		{"sorts", []string{"--show", "status,heartbeats"}, func(o watch.Options) any { return o.Show }, []event.Class{event.Status, event.Heartbeat}},
		{"only changes", nil, func(o watch.Options) any { return o.Existing }, false},
		{"what is there first", []string{"--initial"}, func(o watch.Options) any { return o.Existing }, true},
		{"what is there first, otherwise", []string{"--since-start=false"}, func(o watch.Options) any { return o.Existing }, true},
		{"each change", nil, func(o watch.Options) any { return o.Window + o.Settle }, time.Duration(0)},
		{"a window", []string{"--window", "2s"}, func(o watch.Options) any { return o.Window }, 2 * time.Second},
		{"rest", []string{"--settle", "5s"}, func(o watch.Options) any { return o.Settle }, 5 * time.Second},
		{"rules", []string{"--hide", "configmaps:data.a", "--hide", "configmaps:data.b"}, func(o watch.Options) any { return len(o.Hide) }, 2},
		{"a condition", []string{"--where", "event.verb == 'deleted'"}, func(o watch.Options) any {
			deleted, _ := o.Keep(&event.Event{Verb: event.Deleted})
			created, _ := o.Keep(&event.Event{Verb: event.Created})
			return []bool{deleted, created}
		}, []bool{true, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, p, err := planned(t, "", test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := test.get(p.Options); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

const everyKey = `
watch:
  kinds: [deployments.apps]
  namespaces: [team-a]
  excludeNamespaces: [team-b]
  labels: tier=web
  fields: metadata.name=web
  show: [status]
  window: 2s
  settle: 5s
  where: event.verb == "deleted"
  initial: true
hide: ['configmaps:data.password']
cursor: ./seen
listen: 127.0.0.1:10270
lease: monitoring/watch
`

func TestTheFileSaysWhatTheFlagsLeaveOpen(t *testing.T) {
	_, o, err := planned(t, everyKey)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Kinds, []string{"deployments.apps"}) || !slices.Equal(o.Namespaces, []string{"team-a"}) || !slices.Equal(o.ExcludeNamespaces, []string{"team-b"}) ||
		o.Labels != "tier=web" || o.Fields != "metadata.name=web" || !slices.Equal(o.Show, []event.Class{event.Status}) ||
		o.Window != 2*time.Second || o.Settle != 5*time.Second || !o.Existing || len(o.Hide) != 1 || o.Keep == nil || o.Cursor != "./seen" {
		t.Errorf("%+v, cursor %q", o, o.Cursor)
	}
	if len(o.Sinks) != 1 || o.Sinks[0].Name != terminalName || o.Sinks[0].Terminal == nil {
		t.Errorf("sinks %+v, want the terminal", o.Sinks)
	}
}

func TestFlagsWinOverTheFile(t *testing.T) {
	_, o, err := planned(t, everyKey, "pods", "-n", "team-c", "--exclude-namespace", "team-d", "-l", "a=b", "--field-selector", "",
		"--show", "heartbeats", "--window", "0", "--settle", "1s", "--where", "", "--since-start", "--hide", "configmaps:data.token", "--cursor", "./other")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Kinds, []string{"pods"}) || !slices.Equal(o.Namespaces, []string{"team-c"}) || !slices.Equal(o.ExcludeNamespaces, []string{"team-d"}) ||
		o.Labels != "a=b" || o.Fields != "" || !slices.Equal(o.Show, []event.Class{event.Heartbeat}) ||
		o.Window != 0 || o.Settle != time.Second || o.Existing || o.Keep != nil || o.Cursor != "./other" {
		t.Errorf("%+v, cursor %q", o, o.Cursor)
	}
	if len(o.Hide) != 2 {
		t.Errorf("%d rules; those of the file hold whatever the flags say", len(o.Hide))
	}
}

func TestAllOfTheCommandLineWinsOverKindsOfTheFileAndTheOtherWayRound(t *testing.T) {
	_, p, err := planned(t, everyKey, "--all")
	if err != nil || !p.All || len(p.Kinds) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	_, p, err = planned(t, "watch:\n  all: true\n", "pods")
	if err != nil || p.All || len(p.Kinds) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	_, p, err = planned(t, everyKey, "-A")
	if err != nil || len(p.Namespaces) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestMistakesOfTheFileAreNamedByLine(t *testing.T) {
	_, _, err := planned(t, "watch:\n  kind: [pods]\n  window: 2\n")
	if err == nil || !strings.Contains(err.Error(), "watch.yaml:3:") || !strings.Contains(err.Error(), "watch.yaml:4:") {
		t.Error(err)
	}
}

const fileSink = `
sinks:
- name: changes
  file: {path: ./changes.json}
`

func TestFlagsAboutPrintingNeedSomethingThatPrints(t *testing.T) {
	_, _, err := planned(t, fileSink, "-o", "json")
	if err == nil || !strings.Contains(err.Error(), "--output: nothing is printed") {
		t.Error(err)
	}
	_, p, err := planned(t, fileSink+"- name: screen\n  terminal: {form: diff, objects: false}\n", "-o", "json", "--color", "always")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Sinks[1].Terminal; got.Form != "json" || !got.Color {
		t.Errorf("%+v", got)
	}
	w, _ := testWorld(nil)
	c, err := config.Parse([]byte("apiVersion: "+config.Version+"\nsinks: [{name: screen, terminal: {form: diff}}]"), "watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	always := printing{form: "json", color: "always"}
	if _, err := always.sinks(w, c, func(string) bool { return true }); err != nil || c.Sinks[0].Terminal.Form != "diff" || c.Sinks[0].Terminal.Color {
		t.Errorf("the configuration was written to: %+v, %v", c.Sinks[0].Terminal, err)
	}
}

func TestColorsAreForTerminalsOfThoseWhoWantThem(t *testing.T) {
	for _, test := range []struct {
		name     string
		color    string
		terminal bool
		env      map[string]string
		want     bool
	}{
		{"a terminal", "auto", true, map[string]string{"TERM": "xterm"}, true},
		{"a pipe", "auto", false, nil, false},
		{"NO_COLOR", "auto", true, map[string]string{"NO_COLOR": "1"}, false},
		{"NO_COLOR, empty", "auto", true, map[string]string{"NO_COLOR": ""}, true},
		{"a terminal that has none", "auto", true, map[string]string{"TERM": "dumb"}, false},
		{"always", "always", false, map[string]string{"NO_COLOR": "1"}, true},
		{"never", "never", true, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, _ := testWorld(test.env)
			w.StdoutTerminal = test.terminal
			p := printing{form: "text", color: test.color}
			got, err := p.terminal(w, func(string) bool { return false })
			if err != nil || got.Color != test.want {
				t.Errorf("%v, %v", got.Color, err)
			}
		})
	}
}

func TestSecretsAreReadFromFilesAndTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, _ := testWorld(map[string]string{"TOKEN": "s3cret"})
	read := secrets(w)
	for _, ref := range []sink.SecretRef{{File: file}, {Env: "TOKEN"}} {
		if got, err := read(ref); err != nil || strings.TrimSpace(got) != "s3cret" {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	for _, ref := range []sink.SecretRef{{File: file + ".not"}, {Env: "NONE"}} {
		if got, err := read(ref); err == nil || got != "" {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
}

// A rule for a name that no kind has would hide nothing.
func TestARuleToHideNamesAKindAsItIsServed(t *testing.T) {
	for _, rule := range []string{"cm:data.password", "configmap:data.password", "ConfigMap:data.password", "deployments:spec.template", "deployments.v1.apps:spec.template"} {
		if _, said := refused(t, "--hide", rule); !strings.Contains(said, "--hide="+rule+": ") {
			t.Errorf("--hide %s is taken, and hides nothing: %s", rule, said)
		}
	}
}
