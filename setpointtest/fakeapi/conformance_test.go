// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var update = flag.Bool("update", false, "write testdata/conformance.golden from what the real API server answers")

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var (
	configMaps  = object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	pods        = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	namespaces  = object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	deployments = object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	leases      = object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
	widgets     = object.Resource{Group: "fakeapi.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}
	gadgets     = object.Resource{Group: "fakeapi.example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true}
)

const (
	script = "testdata/conformance.txt"
	golden = "testdata/conformance.golden"
)

// The fake server and a real one get the requests of testdata/conformance.txt, and both
// must answer what testdata/conformance.golden says.

func TestTheFakeServerAnswersAsARealOne(t *testing.T) {
	api := fakeapi.New(configMaps, pods, namespaces, deployments, leases, gadgets)
	api.Serve(widgets, fakeapi.WithStatus(), fakeapi.WithFields("spec.color"))
	compare(t, play(t, api.Config(), "ns"))
}

func TestARealServerAnswersAsTheGoldenFileSays(t *testing.T) {
	c := shared.Get(t)
	define(t, c)
	got := play(t, c.Config, c.Namespace(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, got)
}

// define has the real server serve the custom kinds.
func define(t *testing.T, c *controlplanetest.Cluster) {
	t.Helper()
	for _, kind := range []object.Resource{gadgets, widgets} {
		c.Define(t, kind)
		t.Cleanup(func() { c.Undefine(t, kind) }) // or a second run would find it changed
	}
	body := `[{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}},
		{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties","value":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"color":{"type":"string"}}}}},
		{"op":"add","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.color"}]}]`
	_, err := c.Client.Request(http.MethodPatch).Resource(controlplanetest.Definitions).Name(widgets.String()).
		Body("application/json-patch+json", []byte(body)).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "widgets have a status", func() bool {
		answer, err := c.Client.Request(http.MethodGet).Path("/apis/" + widgets.APIVersion()).Do(t.Context())
		if err != nil || !strings.Contains(string(answer.Body), "widgets/status") {
			return false
		}
		_, err = c.Client.Request(http.MethodGet).Resource(widgets).Param("fieldSelector", "spec.color=red").Do(t.Context())
		return err == nil
	})
}

func compare(t *testing.T, got string) {
	t.Helper()
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(text), "\n# "), strings.Split(got, "\n# ")
	if len(want) != len(have) {
		t.Fatalf("%d steps, and %s has %d", len(have), golden, len(want))
	}
	for i := range want {
		if have[i] != want[i] {
			_, w, _ := strings.Cut(want[i], "\n")
			t.Errorf("# %s\nwant %s", have[i], w)
		}
	}
}

// step is one request of the script.
type step struct {
	comment      string
	method, path string
	header       http.Header
	body         string
	capture      string // the name under which later steps can use the answer
	only         bool   // of objects, compare the metadata alone
	read         int    // events to read from the watch that capture names
}

func readScript(t *testing.T) []step {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		s := step{header: http.Header{}}
		for line := range strings.SplitSeq(block, "\n") {
			name, value, isHeader := strings.Cut(line, ": ")
			switch {
			case strings.HasPrefix(line, "# "):
				s.comment += strings.TrimPrefix(line, "# ") + " "
			case s.body != "" || strings.HasPrefix(line, "{") || strings.HasPrefix(line, "["):
				s.body += line
			case s.method == "" && name != line && name == "READ":
				watch, n, _ := strings.Cut(value, " ")
				s.method, s.capture = name, watch
				s.read, _ = strconv.Atoi(n)
			case s.method == "":
				s.method, s.path, _ = strings.Cut(line, " ")
			case name == "as":
				s.capture = value
			case name == "compare" && value == "metadata":
				s.only = true
			case isHeader:
				s.header.Set(name, value)
			default:
				t.Fatalf("%s: %q cannot be read", script, line)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// player plays the script against one server.
type player struct {
	t         *testing.T
	host      string
	transport http.RoundTripper
	namespace string
	variables []string // for strings.NewReplacer
	watches   map[string]*bufio.Scanner
	versions  map[string]bool // of objects, in numbers of the server
	uids      []string
}

func play(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{
		t: t, host: config.Host, transport: transport, namespace: namespace,
		variables: []string{"{ns}", namespace}, watches: map[string]*bufio.Scanner{}, versions: map[string]bool{},
	}
	var out strings.Builder
	for _, s := range readScript(t) {
		fmt.Fprintf(&out, "# %s\n%s\n", strings.TrimSpace(s.comment), p.do(s))
	}
	return p.ranked(out.String())
}

func (p *player) do(s step) string {
	p.t.Helper()
	if s.method == "READ" {
		return p.read(s)
	}
	replace := strings.NewReplacer(p.variables...)
	request, err := http.NewRequestWithContext(p.t.Context(), s.method, p.host+replace.Replace(s.path), strings.NewReader(replace.Replace(s.body)))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header = s.header.Clone()
	request.Header.Set("User-Agent", "conformance")
	if s.body != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		p.t.Fatalf("%s %s: %v", s.method, s.path, err)
	}
	if strings.Contains(s.path, "watch=") && response.StatusCode == http.StatusOK {
		p.t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		p.watches[s.capture] = lines
		return "200 watching"
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()
	for _, warning := range response.Header.Values("Warning") {
		body = append(body, "\nwarning: "+warning...)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, p.normal(s, body))
}

// read reads events of a watch.
func (p *player) read(s step) string {
	var out []string
	lines := p.watches[s.capture]
	if lines == nil {
		p.t.Fatalf("no watch %q", s.capture)
	}
	for range s.read {
		came := make(chan bool, 1)
		go func() { came <- lines.Scan() }()
		select {
		case ok := <-came:
			if !ok {
				out = append(out, "end")
				continue
			}
			out = append(out, p.normal(s, lines.Bytes()))
		case <-time.After(controlplanetest.Patience):
			p.t.Fatalf("%s: watch %s sent %d events: %v", s.comment, s.capture, len(out), out)
		}
	}
	return strings.Join(out, "\n")
}

var (
	times     = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z$`)
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	generated = regexp.MustCompile(`gen-[a-z0-9]{5}\b`)
	numbers   = regexp.MustCompile(`\b\d+\b`)
)

// normal returns a body without what differs from run to run.
func (p *player) normal(s step, body []byte) string {
	text, rest, _ := bytes.Cut(body, []byte("\nwarning: "))
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if bytes.HasPrefix(text, []byte("k8s\x00")) {
		return "protobuf"
	}
	if err := decoder.Decode(&value); err != nil {
		return strings.TrimSpace(string(text))
	}
	if object, ok := value.(map[string]any); ok && s.capture != "" {
		p.remember(s.capture, object)
	}
	value = p.clean(value, s.only)
	out, err := json.Marshal(value)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(rest) > 0 {
		out = append(out, " warning: "+string(rest)...)
	}
	return string(out)
}

// remember makes what an answer says of its object usable in later steps.
func (p *player) remember(name string, object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for field, short := range map[string]string{"resourceVersion": "rv", "uid": "uid", "continue": "continue", "name": "name"} {
		if text, ok := metadata[field].(string); ok {
			p.variables = append(p.variables, "{"+name+"."+short+"}", text)
		}
	}
}

func (p *player) clean(value any, only bool) any {
	switch v := value.(type) {
	case map[string]any:
		_, isObject := v["metadata"]
		kind, _ := v["kind"].(string)
		for name, inner := range v {
			switch {
			case name == "managedFields" || isObject && only && kind != "Status" && !slices.Contains([]string{"kind", "apiVersion", "metadata", "items", "type"}, name):
				delete(v, name)
			case name == "resourceVersion" && isList(v):
				v[name] = "LIST"
			case name == "resourceVersion":
				text, _ := inner.(string)
				p.versions[text] = true
				v[name] = "rv:" + text
			case name == "continue" && inner != "":
				v[name] = "CONTINUE"
			case name == "message":
				v[name] = p.message(fmt.Sprint(inner))
			default:
				v[name] = p.clean(inner, only)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = p.clean(v[i], only)
		}
		return v
	case string:
		if times.MatchString(v) {
			return "TIME"
		}
		return p.names(v)
	}
	return value
}

// isList reports whether metadata is that of a list, or of a bookmark.
func isList(metadata map[string]any) bool {
	_, named := metadata["name"]
	return !named
}

// patched is an object that cannot be read after a patch: field by field as upstream has them.
var patched = regexp.MustCompile(`patch: Invalid value: ".*": `)

func (p *player) message(text string) string {
	text = patched.ReplaceAllString(text, "patch: Invalid value: OBJECT: ")
	if strings.HasPrefix(text, `Invalid value: "{`) {
		text = "Invalid value: OBJECT" + text[strings.LastIndex(text, `": `):]
	}
	return numbers.ReplaceAllString(p.names(text), "N")
}

func (p *player) names(text string) string {
	text = uuids.ReplaceAllStringFunc(text, func(uid string) string {
		i := slices.Index(p.uids, uid)
		if i < 0 {
			i = len(p.uids)
			p.uids = append(p.uids, uid)
		}
		return fmt.Sprintf("UID%c", 'A'+i)
	})
	text = generated.ReplaceAllString(text, "gen-RANDOM")
	if p.namespace != "ns" {
		text = strings.ReplaceAll(text, p.namespace, "ns")
	}
	return text
}

// ranked replaces versions by their place in the order of all.
func (p *player) ranked(text string) string {
	var all []string
	for version := range p.versions {
		all = append(all, version)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	var pairs []string
	for i, version := range all {
		pairs = append(pairs, fmt.Sprintf("%q", "rv:"+version), fmt.Sprintf("%q", "v"+strconv.Itoa(i+1)))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
