package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// The part of a Grafana dashboard that contains Prometheus queries.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// queries checks a rules file as `promtool check rules` does, and the queries of a dashboard with the same parser. It
// prints the alerts, the title of the panel of each query, and the metrics that the queries use.
func queries(rules, panels string) {
	groups, problems := rulefmt.ParseFile(rules, false)
	for _, problem := range problems {
		log.Fatal(problem)
	}
	names := map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			collect(rule.Expr, names)
			fmt.Println("alert", rule.Alert)
		}
	}
	text, err := os.ReadFile(panels)
	if err != nil {
		log.Fatal(err)
	}
	var board dashboard
	if err := json.Unmarshal(text, &board); err != nil {
		log.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			collect(target.Expr, names)
			fmt.Println("panel", panel.Title)
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for _, name := range sorted {
		fmt.Println("asks", name)
	}
}

// collect records the names of the metrics that a query uses.
func collect(query string, names map[string]bool) {
	expr, err := parser.ParseExpr(query)
	if err != nil {
		log.Fatalf("%s: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, isSelector := node.(*parser.VectorSelector)
		if !isSelector {
			return nil
		}
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name == labels.MetricName {
				names[matcher.Value] = true
			}
		}
		return nil
	})
}
