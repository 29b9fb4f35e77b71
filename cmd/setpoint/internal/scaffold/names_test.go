// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"strings"
	"testing"
)

func TestNamesFollowFromTheKind(t *testing.T) {
	for _, want := range []struct{ kind, plural, variable, variables, plurals string }{
		{"Website", "", "website", "websites", "websites"},
		{"CronTab", "", "cronTab", "cronTabs", "crontabs"},
		{"DNSRecord", "", "dnsRecord", "dnsRecords", "dnsrecords"},
		{"VM", "", "vm", "vms", "vms"},
		{"Policy", "", "policy", "policies", "policies"},
		{"Bus", "", "bus", "buses", "buses"},
		{"Sheep", "sheep", "sheep", "sheepInformer", "sheep"},
		{"Person", "people", "person", "people", "people"},
		{"Mouse", "field-mice", "mouse", "fieldmice", "field-mice"},
		{"Map", "", "mapObject", "maps", "maps"},                                     // a keyword
		{"String", "", "stringObject", "strings", "strings"},                         // a type of the language
		{"Controller", "", "controllerObject", "controllersInformer", "controllers"}, // a package
		{"ConfigMap", "", "configMapObject", "configMapsInformer", "configmaps"},     // a variable of the template
	} {
		t.Run(want.kind, func(t *testing.T) {
			n := names{Module: "example.com/x", Group: "example.com", Version: "v1", Kind: want.kind, Plural: want.plural}
			if err := n.derive(); err != nil {
				t.Fatal(err)
			}
			if n.Variable != want.variable || n.Variables != want.variables || n.Plural != want.plurals {
				t.Errorf("%s, %s, %s; want %s, %s, %s", n.Variable, n.Variables, n.Plural, want.variable, want.variables, want.plurals)
			}
		})
	}
}

func TestTheFolderIsNamedAfterTheModule(t *testing.T) {
	for module, want := range map[string]string{
		"example.com/website": "website", "example.com/team/website/v2": "website", "website": "website",
		"v2": "v2", "example.com/video": "video",
	} {
		if folder := folderOf(module); folder != want {
			t.Errorf("the folder of %s is %s, want %s", module, folder, want)
		}
	}
}

func TestTheImageIsBuiltWithAReleaseOfGo(t *testing.T) {
	for ours, want := range map[string]string{
		"go1.26.8": "1.26.8", "go1.26.8 X:nodwarf5": "1.26.8", "go1.27rc1": oldestGo, "devel go1.27-0123abc": oldestGo, "": oldestGo,
	} {
		if version := goVersion(ours); version != want {
			t.Errorf("built with %q, the image is built with %s, want %s", ours, version, want)
		}
	}
}

func TestAModuleIsBuiltOnTheFirstLibraryThatIsKnown(t *testing.T) {
	checkout := "../../../.." // this one
	for name, c := range map[string]struct {
		source, version, own, executable, require string
		replaces                                  bool
		err                                       string
	}{
		"the source first":            {checkout, "v0.2.0", "v0.1.0", "", notBuilt, true, ""},
		"then the version":            {"", "v0.2.0", "v0.1.0", "", "v0.2.0", false, ""},
		"then that of the program":    {"", "", "v0.1.0", "", "v0.1.0", false, ""},
		"then the program's checkout": {"", "", "unknown", checkout + "/bin/setpoint", notBuilt, true, ""},
		"or none":                     {"", "", "unknown", "/usr/bin/setpoint", "", false, `this program has version "unknown", which is no release`},
	} {
		t.Run(name, func(t *testing.T) {
			var n names
			err := n.requireLibrary(c.source, c.version, c.own, c.executable)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("the error is %v, want %q", err, c.err)
			}
			if n.Require != c.require || (n.Source != "") != c.replaces {
				t.Errorf("required is %s from %q", n.Require, n.Source)
			}
		})
	}
}

func TestPathsAreQuotedWhereGoModNeedsIt(t *testing.T) {
	for path, want := range map[string]string{"/a/b": "/a/b", "/a b": `"/a b"`, "/a(1)": `"/a(1)"`} {
		if q := quoted(path); q != want {
			t.Errorf("%s is %s, want %s", path, q, want)
		}
	}
}
