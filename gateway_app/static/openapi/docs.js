// No validator: it runs on another company's server.
SwaggerUIBundle({ url: "/openapi.json", dom_id: "#docs", deepLinking: true, validatorUrl: null });

// Swagger UI has a dark theme, and the frame of the page decides when to use it.
const root = document.documentElement;
const follow = () => root.classList.toggle("dark-mode", root.dataset.scheme === "dark");
document.addEventListener("themechange", follow);
follow();
