// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
	"github.com/setpoint-io/setpoint/browser/internal/programs"
)

// options are the values of the flags.
type options struct{ out, setpoint, kubectl string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	flag.StringVar(&o.out, "out", "docs/pictures", "`folder` to write the pictures to")
	flag.StringVar(&o.setpoint, "setpoint", "bin/setpoint", "`path` of setpoint")
	flag.StringVar(&o.kubectl, "kubectl", "bin/kubectl", "`path` of kubectl")
	flag.Parse()
	if err := takeAll(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

// takeAll plays the story and takes all pictures.
func takeAll(ctx context.Context, o options) (err error) {
	if err := play(ctx, o.kubectl); err != nil {
		return err
	}
	pages, err := programs.UI(ctx, o.setpoint, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pages.End()) }()
	browser, err := chromium.Start(ctx)
	if err != nil {
		return err
	}
	defer browser.Close()
	tab, err := browser.Open()
	if err != nil {
		return err
	}
	if err := tab.Visit(pages.Login); err != nil {
		return err
	}
	for _, s := range shots {
		if err := s.take(tab, pages.Root, o.out); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return nil
}

// shot is one picture.
type shot struct {
	file, path string
	scheme     string   // of colors: "light" or "dark"
	texts      []string // that the view shows once the story is over
	open       string   // in the line of the group of changes that is opened then
	height     int64    // at which the picture is cut, in CSS pixels; 0 is highest
}

var shots = []shot{
	{file: "page-loops.png", path: "/", scheme: "light", texts: []string{"1 loop needs attention", "exceeded quota"}},
	{file: "page-object.png", path: "/o/apps/deployments/" + namespace + "/web", scheme: "light", texts: []string{"ImagePullBackOff", "timeline"}},
	{file: "page-changes.png", path: "/changes?namespace=" + namespace, scheme: "dark", texts: []string{"rollout of web"}, open: "rollout of web", height: 800},
}

// highest is the height of a picture that is cut, in CSS pixels.
const highest = 1000

// take takes the picture and writes it to a folder.
func (s shot) take(tab *chromium.Tab, root, folder string) error {
	if err := errors.Join(tab.Resize(chromium.Width, highest), tab.Scheme(s.scheme), tab.Visit(root+s.path)); err != nil {
		return err
	}
	for _, text := range s.texts {
		if err := tab.Until(fmt.Sprintf("document.body.innerText.toLowerCase().includes(%q.toLowerCase())", text)); err != nil {
			return err
		}
	}
	if s.open != "" {
		marked, err := chromium.Evaluate[bool](tab, fmt.Sprintf(`(() => {
			const line = [...document.querySelectorAll("details.change > summary")].find((s) => s.innerText.toLowerCase().includes(%q))
			line?.setAttribute("data-picture", "")
			return line !== undefined
		})()`, strings.ToLower(s.open)))
		if err == nil && !marked {
			err = fmt.Errorf("%s: no group of changes says %q", s.file, s.open)
		}
		if err != nil {
			return err
		}
		if err := tab.Click("[data-picture]"); err != nil {
			return err
		}
	}
	high, err := chromium.Evaluate[int64](tab, "document.activeElement?.blur(), Math.ceil(document.body.getBoundingClientRect().bottom)")
	if err != nil {
		return err
	}
	if err := tab.Resize(chromium.Width, min(high, cmp.Or(s.height, highest))); err != nil {
		return err
	}
	picture, err := tab.Picture()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, s.file), picture, 0o644) //nolint:gosec // pictures are for all readers
}
