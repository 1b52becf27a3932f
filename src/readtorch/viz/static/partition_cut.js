const draw = () => h("div", {});
export default { render: figure(model, draw) };
